//! The names of notes.

use super::DETAILS;
use crate::Error;
use crate::resource_path;
use std::fmt;
use std::path::Path;

/// The core notes, in the order in which they are read.
pub const CORE: [&str; 6] =
    ["projectbrief.md", "productContext.md", "systemPatterns.md", "techContext.md", "activeContext.md", "progress.md"];

/// The longest name of a note in [`DETAILS`], in bytes, without `.md`.
pub const MAX_NAME_BYTES: usize = 64;

/// The name of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// A core note: one of [`CORE`].
    Core(&'static str),
    /// A note in [`DETAILS`]: the name of its file.
    Detail(String),
}

impl Name {
    /// Parses a name.
    ///
    /// # Errors
    /// A message for the model.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        if let Some(core) = CORE.into_iter().find(|core| *core == text) {
            return Ok(Self::Core(core));
        }
        match text.strip_prefix(DETAILS).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) if is_details_file(name) => Ok(Self::Detail(name.to_owned())),
            _ => Err(format!(
                "{} is not the name of a note. The notes are {}, and {DETAILS}/NAME.md, where NAME has at most {MAX_NAME_BYTES} letters, \
                 digits, dots, - and _, and does not begin with a dot.",
                resource_path::quote(text),
                CORE.join(", ")
            ).into()),
        }
    }

    /// Returns the note of a file in [`DETAILS`], if its name is valid.
    pub(super) fn from_details_file(file: &str) -> Option<Self> {
        is_details_file(file).then(|| Self::Detail(file.to_owned()))
    }

    /// Returns whether this is a core note.
    pub(super) fn is_core(&self) -> bool {
        matches!(self, Self::Core(_))
    }

    /// Returns the name of the note's file within its directory.
    pub(super) fn file(&self) -> &Path {
        match self {
            Self::Core(name) => Path::new(name),
            Self::Detail(name) => Path::new(name),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(name) => f.write_str(name),
            Self::Detail(name) => write!(f, "{DETAILS}/{name}"),
        }
    }
}

/// Returns whether the name of a file in [`DETAILS`] is valid.
fn is_details_file(file: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    file.strip_suffix(".md").is_some_and(|name| {
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.starts_with('.') && name.bytes().all(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::core("activeContext.md")]
    #[case::detail("details/api.v2_notes-1.md")]
    #[case::longest(&format!("details/{}.md", "x".repeat(MAX_NAME_BYTES)))]
    fn a_valid_name_is_parsed(#[case] name: &str) {
        assert_eq!(Name::parse(name).unwrap().to_string(), name);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::unknown_core_note("notes.md")]
    #[case::upper_case("ActiveContext.md")]
    #[case::another_suffix("details/a.txt")]
    #[case::no_name("details/.md")]
    #[case::hidden("details/.a.md")]
    #[case::parent_directory("details/../progress.md")]
    #[case::deeper("details/a/b.md")]
    #[case::absolute("/etc/passwd.md")]
    #[case::the_ledger(".ledger/00000000000000000001.json")]
    #[case::too_long(&format!("details/{}.md", "x".repeat(MAX_NAME_BYTES + 1)))]
    #[case::not_ascii("details/ä.md")]
    #[case::nul("details/a\0.md")]
    fn an_invalid_name_is_refused(#[case] name: &str) {
        let error = Name::parse(name).unwrap_err().to_string();
        assert!(error.contains("is not the name of a note") && error.len() < 700, "{error}");
    }

    proptest! {
        #[test]
        fn a_note_in_details_has_one_plain_file_name(name in "(details/)?(\\.\\.|\\.|/|[a-z]|\\\\| |md){0,6}(\\.md)?") {
            if let Ok(Name::Detail(file)) = Name::parse(&name) {
                prop_assert!(Path::new(&file).components().count() == 1 && !file.starts_with('.'), "{file}");
            }
        }
    }
}
