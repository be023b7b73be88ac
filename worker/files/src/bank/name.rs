//! The names of notes.

use super::DETAILS;
use crate::Error;
use crate::place;
use std::fmt;
use std::path::Path;

/// The core notes, in the order in which they are read (seed 003).
pub const CORE: [&str; 6] =
    ["projectbrief.md", "productContext.md", "systemPatterns.md", "techContext.md", "activeContext.md", "progress.md"];

/// The longest name of a note in [`DETAILS`], without its `.md`.
pub const MAX_NAME: usize = 64;

/// The name of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// One of [`CORE`].
    Core(&'static str),
    /// One in [`DETAILS`], with its `.md`.
    Detail(String),
}

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// A message for the model.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        if let Some(core) = CORE.into_iter().find(|core| *core == text) {
            return Ok(Self::Core(core));
        }
        match text.strip_prefix(DETAILS).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) if is_detail(name) => Ok(Self::Detail(name.to_owned())),
            _ => Err(format!(
                "{} is no note: notes are {}, and {DETAILS}/NAME.md, where NAME has at most {MAX_NAME} letters, digits, \
                 dots, - and _, and begins with no dot.",
                place::shown(text),
                CORE.join(", ")
            ).into()),
        }
    }

    /// Returns the note of a file in [`DETAILS`], if its name is valid.
    pub(super) fn of_detail(file: &str) -> Option<Self> {
        is_detail(file).then(|| Self::Detail(file.to_owned()))
    }

    pub(super) fn is_core(&self) -> bool {
        matches!(self, Self::Core(_))
    }

    /// Returns the name of its file within its directory.
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

fn is_detail(file: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    file.strip_suffix(".md").is_some_and(|name| {
        !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(plain)
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
    #[case::longest(&format!("details/{}.md", "x".repeat(MAX_NAME)))]
    fn a_note(#[case] name: &str) {
        assert_eq!(Name::parse(name).unwrap().to_string(), name);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::of_no_such_core("notes.md")]
    #[case::in_another_case("ActiveContext.md")]
    #[case::no_markdown("details/a.txt")]
    #[case::no_name("details/.md")]
    #[case::hidden("details/.a.md")]
    #[case::up("details/../progress.md")]
    #[case::deeper("details/a/b.md")]
    #[case::absolute("/etc/passwd.md")]
    #[case::the_ledger(".ledger/00000000000000000001.json")]
    #[case::too_long(&format!("details/{}.md", "x".repeat(MAX_NAME + 1)))]
    #[case::not_ascii("details/ä.md")]
    #[case::nul("details/a\0.md")]
    fn no_note(#[case] name: &str) {
        let error = Name::parse(name).unwrap_err().to_string();
        assert!(error.contains("is no note") && error.len() < 700, "{error}");
    }

    proptest! {
        #[test]
        fn a_note_is_one_plain_name_below_the_bank(name in "(details/)?(\\.\\.|\\.|/|[a-z]|\\\\| |md){0,6}(\\.md)?") {
            if let Ok(Name::Detail(file)) = Name::parse(&name) {
                prop_assert!(Path::new(&file).components().count() == 1 && !file.starts_with('.'), "{file}");
            }
        }
    }
}
