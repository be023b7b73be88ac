//! Globs, as regular expressions that run in linear time.

use crate::Error;
use regex::{Regex, RegexBuilder};

/// The largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;

/// A compiled glob.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    pattern: Regex,
    matches_names: bool,
}

impl Glob {
    /// Compiles a glob: `*` and `?` within a name, `**` across directories, `{a,b}`, `[a-z]`, `[!a-z]`, `\` before what
    /// is meant as it stands. One without `/` is of names, any other of whole paths.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn new(glob: &str) -> Result<Self, Error> {
        let faulty = |why: &str| format!("The glob {} cannot be used: {why}.", crate::place::shown(glob));
        let pattern = translated(glob).map_err(faulty)?;
        let mut builder = RegexBuilder::new(&pattern);
        builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).nest_limit(32);
        let pattern = builder.build().map_err(|_| faulty("it is too large, or a range in it is empty"))?;
        Ok(Self { pattern, matches_names: !glob.contains('/') })
    }

    /// Returns whether it matches the entry with this path, whose last part is `name`.
    pub(crate) fn is_match(&self, path: &str, name: &str) -> bool {
        self.pattern.is_match(if self.matches_names { name } else { path })
    }
}

fn translated(glob: &str) -> Result<String, &'static str> {
    let mut pattern = String::from("(?s)^");
    let mut rest = glob.strip_prefix('/').unwrap_or(glob).chars().peekable();
    let mut open = 0_u32;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                let whole_names = rest.next_if_eq(&'/').is_some();
                pattern.push_str(if whole_names { "(?:.*/)?" } else { ".*" });
            }
            '*' => pattern.push_str("[^/]*"),
            '?' => pattern.push_str("[^/]"),
            '{' => {
                open += 1;
                pattern.push_str("(?:");
            }
            '}' if open > 0 => {
                open -= 1;
                pattern.push(')');
            }
            ',' if open > 0 => pattern.push('|'),
            '[' => pattern.push_str(&class(&mut rest)?),
            '\\' => literal(rest.next().ok_or("it ends in a \\")?, &mut pattern),
            other => literal(other, &mut pattern),
        }
    }
    if open > 0 {
        return Err("a { has no }");
    }
    pattern.push('$');
    Ok(pattern)
}

fn class(rest: &mut impl Iterator<Item = char>) -> Result<String, &'static str> {
    let mut class = String::from("[");
    let mut is_first = true;
    for c in rest.by_ref() {
        match c {
            ']' if !is_first => {
                class.push(']');
                return Ok(class);
            }
            '!' | '^' if is_first && class.len() == 1 => {
                // What is negated may still begin with a `]`.
                class.push('^');
                continue;
            }
            '-' => class.push('-'),
            '/' => return Err("a [ ] holds a /"),
            other => literal(other, &mut class),
        }
        is_first = false;
    }
    Err("a [ has no ]")
}

fn literal(c: char, pattern: &mut String) {
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
    #[case::two_stars_are_not("src/**/*.rs", "src/a/b/main.rs", true)]
    #[case::two_stars_may_be_nothing("src/**/*.rs", "src/main.rs", true)]
    #[case::all_below("src/**", "src/a/b", true)]
    #[case::alternatives("*.{rs,toml}", "Cargo.toml", true)]
    #[case::one_character("a?c", "abc", true)]
    #[case::but_no_slash("x/a?c", "x/a/c", false)]
    #[case::class("[a-c]x", "bx", true)]
    #[case::no_class("[!a-c]x", "bx", false)]
    #[case::what_regular_expressions_mean_is_meant_as_it_stands("a.(b)+", "a.(b)+", true)]
    #[case::escaped("\\*", "*", true)]
    #[case::from_the_root("/src/*", "src/a", true)]
    fn globs(#[case] glob: &str, #[case] path: &str, #[case] expected: bool) {
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(Glob::new(glob).unwrap().is_match(path, name), expected);
    }

    #[rstest]
    #[case::open_brace("{a")]
    #[case::open_class("[a")]
    #[case::empty_range("[z-a]")]
    #[case::trailing("a\\")]
    #[case::a_path_in_a_class("[a/b]")]
    fn no_glob(#[case] glob: &str) {
        assert!(Glob::new(glob).unwrap_err().to_string().contains("cannot be used"));
    }

    proptest! {
        #[test]
        fn no_glob_panics(glob in "[\\[\\]{},*?!^\\\\/a-c.()|$é-]{0,24}", path in "[a-c/.]{0,12}") {
            if let Ok(glob) = Glob::new(&glob) {
                let _ = glob.is_match(&path, &path);
            }
        }

        #[test]
        fn what_has_no_meaning_of_its_own_means_itself(name in "[a-zA-Z0-9_.+()|$^é ]{1,12}") {
            prop_assert!(Glob::new(&name).unwrap().is_match(&name, &name));
        }
    }
}
