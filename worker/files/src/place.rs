//! The paths of calls, and the checks that need no file system.

use crate::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The longest path, in bytes.
const MAX_PATH: usize = 4096;

/// The directories in which version control keeps its own, in lower case. What is written there can run as a program
/// the next time that a person uses it.
const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".bzr"];

/// A path below a resource, of plain names only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// Reads a path; nothing and `.` are the resource itself.
    ///
    /// # Errors
    /// A message for the model: paths are relative and do not go up, so that what is meant is what stands there.
    pub(crate) fn parse(path: &str) -> Result<Self, Error> {
        let shown = shown(path);
        if path.len() > MAX_PATH {
            return Err(format!("The path has {} bytes, more than {MAX_PATH}.", path.len()).into());
        }
        if path.contains('\0') {
            return Err("The path holds a NUL byte.".into());
        }
        if path.starts_with('/') {
            return Err(format!("{shown} is absolute: paths are relative to the resource.").into());
        }
        let mut place = PathBuf::new();
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                return Err(format!("{shown} goes up: paths have no `..`, they are relative to the resource.").into());
            }
            place.push(name);
        }
        Ok(Self(place))
    }

    /// Returns the path for the file system.
    pub(crate) fn path(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }

    /// Returns whether it is the resource itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// Returns the parent and the name; `None` for the resource itself.
    pub(crate) fn split(&self) -> Option<(Self, &Path)> {
        let name = self.0.file_name()?;
        Some((Self(self.0.parent().map(Path::to_owned).unwrap_or_default()), Path::new(name)))
    }

    /// Returns the components of the path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter()
    }

    /// Returns the path for messages.
    pub(crate) fn shown(&self) -> String {
        if self.is_root() { "the resource itself".to_owned() } else { shown(&self.0.to_string_lossy()) }
    }

    /// Returns whether it is within a directory of version control, by any spelling that a file system accepts.
    pub(crate) fn is_version_controls(&self) -> bool {
        is_within_version_control(&self.0)
    }
}

/// Returns whether a path leads into a directory of version control, without resolving links.
pub(crate) fn is_within_version_control(path: &Path) -> bool {
    path.iter().any(|name| is_version_controls(&name.to_string_lossy()))
}

/// Returns whether a name means a directory of version control on some file system. Ignores case, invisible characters, and dots
/// and blanks at the end, and knows the short names of old file systems (CVE-2014-9390).
pub(crate) fn is_version_controls(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii).map(|c| c.to_ascii_lowercase()).collect();
    let plain = plain.trim_end_matches(['.', ' ']);
    let plain = plain.split_once(':').map_or(plain, |(name, _)| name);
    VERSION_CONTROL.contains(&plain)
        || plain.strip_prefix("git~").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// Formats a path or name for a message: cut to 256 bytes, with control characters escaped.
pub(crate) fn shown(path: &str) -> String {
    let escaped = escaped(path);
    let end = escaped.floor_char_boundary(256);
    let dots = if end < escaped.len() { "..." } else { "" };
    format!("`{}{dots}`", escaped.get(..end).unwrap_or_default())
}

/// Escapes control characters and line separators of a name, so that it cannot end its line.
pub(crate) fn escaped(name: &str) -> String {
    if !name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return name.to_owned();
    }
    name.chars()
        .flat_map(|c| {
            let spelt = if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                c.escape_unicode().collect()
            } else {
                vec![c]
            };
            spelt.into_iter()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use std::path::Component;

    #[rstest]
    #[case::plain("src/main.rs", "src/main.rs")]
    #[case::untidy("./src//lib/./a.rs/", "src/lib/a.rs")]
    #[case::the_resource("", ".")]
    #[case::a_dot(".", ".")]
    #[case::dots_that_are_a_name("a/...", "a/...")]
    fn a_path_below_the_resource(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(Place::parse(path).unwrap().path(), Path::new(expected));
    }

    #[rstest]
    #[case::absolute("/etc/passwd", "is absolute")]
    #[case::up("../x", "goes up")]
    #[case::up_in_the_middle("a/../../x", "goes up")]
    #[case::up_at_the_end("a/..", "goes up")]
    #[case::nul("a\0b", "NUL")]
    #[case::long(&"x/".repeat(3000), "6000 bytes")]
    fn a_path_that_is_refused(#[case] path: &str, #[case] why: &str) {
        let error = Place::parse(path).unwrap_err().to_string();
        assert!(error.contains(why) && error.len() < 600, "{error}");
    }

    #[rstest]
    #[case::as_it_is(".git/config", true)]
    #[case::in_upper_case("sub/.GIT/hooks/post-checkout", true)]
    #[case::with_a_character_that_is_not_seen(".g\u{200c}it/config", true)]
    #[case::short_name("GIT~1/config", true)]
    #[case::dots_at_the_end(".git. ./config", true)]
    #[case::a_stream(".git::$INDEX_ALLOCATION/config", true)]
    #[case::other_systems("a/.hg/hgrc", true)]
    #[case::no_such(".github/workflows/ci.yml", false)]
    #[case::a_file_of_git(".gitignore", false)]
    #[case::another_name("git/config", false)]
    fn what_version_control_keeps(#[case] path: &str, #[case] expected: bool) {
        assert_eq!(Place::parse(path).unwrap().is_version_controls(), expected);
    }

    #[test]
    fn a_name_cannot_end_its_line() {
        assert_eq!(escaped("a\nb\u{2028}c\u{1b}é"), "a\\u{a}b\\u{2028}c\\u{1b}é");
    }

    proptest! {
        #[test]
        fn no_path_leads_up_or_out(path in "(\\.\\.|\\.|/|[a-z]|\\\\| |é){0,12}") {
            if let Ok(place) = Place::parse(&path) {
                let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                prop_assert!(place.path().components().all(plain), "{place:?}");
            }
        }
    }
}
