//! Globs, translated to regular expressions, which match in linear time.
//!
//! `globset` is not used: `GlobMatcher` panics if a glob is nested too deeply, its `?` and `[é]` match bytes instead of characters,
//! and its `src/**.rs` does not match in subdirectories.

use crate::Error;
use regex::{Regex, RegexBuilder};

/// The limit on a compiled glob, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// A compiled glob.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    pattern: Regex,
    /// Whether the glob is matched against names instead of paths.
    matches_names: bool,
}

impl Glob {
    /// Compiles a glob: `*` and `?` match within a name, `**` across directories; `{a,b}`, `[a-z]` and `[!a-z]` work as in a shell,
    /// and `\` escapes the next character. A glob without `/` is matched against names, any other glob against paths.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn new(glob: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| format!("The glob {} is invalid: {reason}.", crate::resource_path::quote(glob));
        let pattern = translate(glob).map_err(invalid)?;
        let mut builder = RegexBuilder::new(&pattern);
        builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).nest_limit(32);
        let pattern = builder.build().map_err(|_| invalid("it is too large, or a range in it is empty"))?;
        Ok(Self { pattern, matches_names: !glob.contains('/') })
    }

    /// Returns whether the glob matches the entry at `path`, whose last part is `name`.
    pub(crate) fn is_match(&self, path: &str, name: &str) -> bool {
        self.pattern.is_match(if self.matches_names { name } else { path })
    }
}

/// Translates a glob to a regular expression.
fn translate(glob: &str) -> Result<String, &'static str> {
    let mut pattern = String::from("(?s)^");
    let mut rest = glob.strip_prefix('/').unwrap_or(glob).chars().peekable();
    let mut open_braces = 0_u32;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                let matches_whole_names = rest.next_if_eq(&'/').is_some();
                pattern.push_str(if matches_whole_names { "(?:.*/)?" } else { ".*" });
            }
            '*' => pattern.push_str("[^/]*"),
            '?' => pattern.push_str("[^/]"),
            '{' => {
                open_braces += 1;
                pattern.push_str("(?:");
            }
            '}' if open_braces > 0 => {
                open_braces -= 1;
                pattern.push(')');
            }
            ',' if open_braces > 0 => pattern.push('|'),
            '[' => pattern.push_str(&translate_class(&mut rest)?),
            '\\' => push_literal(rest.next().ok_or("it ends with a \\")?, &mut pattern),
            other => push_literal(other, &mut pattern),
        }
    }
    if open_braces > 0 {
        return Err("a { is not closed");
    }
    pattern.push('$');
    Ok(pattern)
}

/// Translates a character class, whose opening bracket was read.
fn translate_class(rest: &mut impl Iterator<Item = char>) -> Result<String, &'static str> {
    let mut class = String::from("[");
    let mut is_first = true;
    for c in rest.by_ref() {
        match c {
            ']' if !is_first => {
                class.push(']');
                return Ok(class);
            }
            '!' | '^' if is_first && class.len() == 1 => {
                // A `]` that follows is a member of the class.
                class.push('^');
                continue;
            }
            '-' => class.push('-'),
            '/' => return Err("a [ ] contains a /"),
            other => push_literal(other, &mut class),
        }
        is_first = false;
    }
    Err("a [ is not closed")
}

/// Appends a character that matches itself.
fn push_literal(c: char, pattern: &mut String) {
    pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::suffix("*.rs", "src/main.rs", true)]
    #[case::not_that_suffix("*.rs", "src/main.rst", false)]
    #[case::a_path_from_the_start("src/*.rs", "src/main.rs", true)]
    #[case::a_star_is_within_a_name("src/*.rs", "src/a/main.rs", false)]
    #[case::two_stars_cross_directories("src/**/*.rs", "src/a/b/main.rs", true)]
    #[case::two_stars_may_match_nothing("src/**/*.rs", "src/main.rs", true)]
    #[case::all_below("src/**", "src/a/b", true)]
    #[case::alternatives("*.{rs,toml}", "Cargo.toml", true)]
    #[case::one_character("a?c", "abc", true)]
    #[case::one_character_is_no_slash("x/a?c", "x/a/c", false)]
    #[case::class("[a-c]x", "bx", true)]
    #[case::negated_class("[!a-c]x", "bx", false)]
    #[case::characters_with_a_meaning_in_regular_expressions("a.(b)+", "a.(b)+", true)]
    #[case::escaped_star("\\*", "*", true)]
    #[case::from_the_root("/src/*", "src/a", true)]
    fn a_glob_matches_paths_or_names(#[case] glob: &str, #[case] path: &str, #[case] expected: bool) {
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(Glob::new(glob).unwrap().is_match(path, name), expected);
    }

    #[rstest]
    #[case::open_brace("{a")]
    #[case::open_class("[a")]
    #[case::empty_range("[z-a]")]
    #[case::trailing("a\\")]
    #[case::a_path_in_a_class("[a/b]")]
    fn an_invalid_glob_is_refused(#[case] glob: &str) {
        assert!(Glob::new(glob).unwrap_err().to_string().contains("is invalid"));
    }

    proptest! {
        #[test]
        fn no_glob_panics(glob in "[\\[\\]{},*?!^\\\\/a-c.()|$é-]{0,24}", path in "[a-c/.]{0,12}") {
            if let Ok(glob) = Glob::new(&glob) {
                let _ = glob.is_match(&path, &path);
            }
        }

        #[test]
        fn a_character_without_a_special_meaning_matches_itself(name in "[a-zA-Z0-9_.+()|$^é ]{1,12}") {
            prop_assert!(Glob::new(&name).unwrap().is_match(&name, &name));
        }
    }
}
