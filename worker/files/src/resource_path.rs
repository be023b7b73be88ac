//! The paths in calls, and the checks of paths that need no file system.

use crate::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// The directories of version control systems, in lower case. A file that is written there can run as a program the next time a
/// person uses the version control system.
const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".bzr"];

/// A path relative to a resource. It contains plain names only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourcePath(PathBuf);

impl ResourcePath {
    /// Parses a path. The empty path and `.` mean the resource itself.
    ///
    /// # Errors
    /// A message for the model, if the path is absolute, contains `..` or a NUL byte, or is too long.
    pub(crate) fn parse(path: &str) -> Result<Self, Error> {
        let quoted = quote(path);
        if path.len() > MAX_PATH_BYTES {
            return Err(format!("The path has {} bytes, more than the limit of {MAX_PATH_BYTES}.", path.len()).into());
        }
        if path.contains('\0') {
            return Err("The path contains a NUL byte.".into());
        }
        if path.starts_with('/') {
            return Err(format!("{quoted} is an absolute path. Use a path relative to the resource.").into());
        }
        let mut names = PathBuf::new();
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                return Err(
                    format!("{quoted} contains `..`. Use a path relative to the resource, without `..`.").into()
                );
            }
            names.push(name);
        }
        Ok(Self(names))
    }

    /// Returns the path for file system calls.
    pub(crate) fn as_path(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }

    /// Returns whether the path is that of the resource itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// Returns the parent and the last name; `None` for the resource itself.
    pub(crate) fn split(&self) -> Option<(Self, &Path)> {
        let name = self.0.file_name()?;
        Some((Self(self.0.parent().map(Path::to_owned).unwrap_or_default()), Path::new(name)))
    }

    /// Returns the names of the path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter()
    }

    /// Formats the path for messages.
    pub(crate) fn describe(&self) -> String {
        if self.is_root() { "The resource itself".to_owned() } else { quote(&self.0.to_string_lossy()) }
    }

    /// Returns whether the path leads into a directory of version control, in any spelling that a file system accepts.
    pub(crate) fn is_in_version_control(&self) -> bool {
        leads_into_version_control(&self.0)
    }
}

/// Returns whether a path leads into a directory of version control. Does not resolve links.
pub(crate) fn leads_into_version_control(path: &Path) -> bool {
    path.iter().any(|name| is_version_control_name(&name.to_string_lossy()))
}

/// Returns whether a file system may treat a name as that of a directory of version control. Ignores case, non-ASCII characters,
/// dots and spaces at the end, and the name of a stream after a colon. Recognizes the short names of old file systems
/// (CVE-2014-9390).
pub(crate) fn is_version_control_name(name: &str) -> bool {
    let ascii: String = name.chars().filter(char::is_ascii).map(|c| c.to_ascii_lowercase()).collect();
    let trimmed = ascii.trim_end_matches(['.', ' ']);
    let plain = trimmed.split_once(':').map_or(trimmed, |(name, _)| name);
    VERSION_CONTROL.contains(&plain)
        || plain.strip_prefix("git~").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// Formats a path or name for a message: in backticks, cut to 256 bytes, with control characters escaped.
pub(crate) fn quote(path: &str) -> String {
    let escaped = escape_controls(path);
    let end = escaped.floor_char_boundary(256);
    let dots = if end < escaped.len() { "..." } else { "" };
    format!("`{}{dots}`", escaped.get(..end).unwrap_or_default())
}

/// Escapes control characters and line separators, so that a name stays on its line.
pub(crate) fn escape_controls(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
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
    fn a_valid_path_is_normalized(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(ResourcePath::parse(path).unwrap().as_path(), Path::new(expected));
    }

    #[rstest]
    #[case::absolute("/etc/passwd", "is an absolute path")]
    #[case::up("../x", "contains `..`")]
    #[case::up_in_the_middle("a/../../x", "contains `..`")]
    #[case::up_at_the_end("a/..", "contains `..`")]
    #[case::nul("a\0b", "NUL")]
    #[case::long(&"x/".repeat(3000), "6000 bytes")]
    fn an_invalid_path_is_refused(#[case] path: &str, #[case] reason: &str) {
        let error = ResourcePath::parse(path).unwrap_err().to_string();
        assert!(error.contains(reason) && error.len() < 600, "{error}");
    }

    #[rstest]
    #[case::in_lower_case(".git/config", true)]
    #[case::in_upper_case("sub/.GIT/hooks/post-checkout", true)]
    #[case::with_an_invisible_character(".g\u{200c}it/config", true)]
    #[case::short_name("GIT~1/config", true)]
    #[case::dots_at_the_end(".git. ./config", true)]
    #[case::a_stream(".git::$INDEX_ALLOCATION/config", true)]
    #[case::other_systems("a/.hg/hgrc", true)]
    #[case::another_hidden_directory(".github/workflows/ci.yml", false)]
    #[case::a_file_of_git(".gitignore", false)]
    #[case::another_name("git/config", false)]
    fn a_path_into_version_control_is_recognized(#[case] path: &str, #[case] expected: bool) {
        assert_eq!(ResourcePath::parse(path).unwrap().is_in_version_control(), expected);
    }

    #[test]
    fn an_escaped_name_stays_on_its_line() {
        assert_eq!(escape_controls("a\nb\u{2028}c\u{1b}é"), "a\\u{a}b\\u{2028}c\\u{1b}é");
    }

    proptest! {
        #[test]
        fn no_path_leads_up_or_out(path in "(\\.\\.|\\.|/|[a-z]|\\\\| |é){0,12}") {
            if let Ok(place) = ResourcePath::parse(&path) {
                let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                prop_assert!(place.as_path().components().all(plain), "{place:?}");
            }
        }
    }
}
