//! The files of a directory, as the callers of this crate read them.

use crate::finding::Finding;
use std::collections::BTreeMap;

/// The findings about files, by the path of the file.
pub type FileFindings = BTreeMap<String, Vec<Finding>>;

/// The reason why a file cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// The file has more bytes than asked for.
    TooLarge,
    /// Another reason, as the rest of a sentence that begins with the file.
    Other(String),
}

/// The files of a directory. A caller implements it, because this crate does no IO.
pub trait SkillDirectory {
    /// Returns the paths of the regular files below the directory, sorted, with `/` between their parts.
    fn files(&self) -> &[String];

    /// Reads a file of at most `max_bytes` bytes.
    fn read(&self, file: &str, max_bytes: usize) -> Result<Vec<u8>, ReadFault>;
}

/// The reason why a text cannot be used.
#[derive(Debug)]
pub(super) enum TextFault {
    /// The text has too many characters. The message is the rest of a sentence that begins with the file.
    TooLong(String),
    /// Another reason.
    Other(Finding),
}

impl TextFault {
    /// Returns the reason as an error of the file.
    pub(super) fn error(self) -> Finding {
        match self {
            Self::TooLong(message) => Finding::of_file(message),
            Self::Other(finding) => finding,
        }
    }
}

/// Returns whether a directory has a file.
pub(super) fn has_file(directory: &impl SkillDirectory, file: &str) -> bool {
    directory.files().iter().any(|known| known == file)
}

/// Reads a text of at most `max_chars` characters.
pub(super) fn read_text(directory: &impl SkillDirectory, file: &str, max_chars: usize) -> Result<String, TextFault> {
    const MAX_BYTES_OF_CHAR: usize = 4;
    let too_long = || TextFault::TooLong(format!("has more than {max_chars} characters, the largest number"));
    let bytes = directory.read(file, max_chars.saturating_mul(MAX_BYTES_OF_CHAR)).map_err(|fault| match fault {
        ReadFault::TooLarge => too_long(),
        ReadFault::Other(message) => TextFault::Other(Finding::of_file(message)),
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| TextFault::Other(Finding::not_utf8(error.as_bytes(), error.utf8_error().valid_up_to())))?;
    if text.chars().count() > max_chars { Err(too_long()) } else { Ok(text) }
}

/// Adds a finding about a file.
pub(super) fn add(findings: &mut FileFindings, file: &str, finding: Finding) {
    findings.entry(file.to_owned()).or_default().push(finding);
}
