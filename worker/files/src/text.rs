//! Decoding of file contents.

use crate::root::Opened;
use cap_std::fs::FileExt;
use std::io;

/// The part of a file that is checked for NUL bytes, in bytes, as in git.
const LOOKED_AT: usize = 8000;

/// Decoded text for the model, and notes about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The text.
    pub(crate) text: String,
    /// Notes, each begun with `; `.
    pub(crate) notes: String,
}

/// Returns whether a file is binary: it has a NUL byte near its beginning.
pub(crate) fn is_binary(opened: &Opened) -> io::Result<bool> {
    let mut beginning = vec![0; LOOKED_AT.min(usize::try_from(opened.metadata.len()).unwrap_or(LOOKED_AT))];
    let read = opened.file.read_at(&mut beginning, 0)?;
    Ok(has_nul(beginning.get(..read).unwrap_or_default()))
}

/// Returns whether the bytes contain a NUL byte.
pub(crate) fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_some()
}

/// Decodes bytes as UTF-8. Invalid bytes are replaced and noted, because the text cannot be written back.
pub(crate) fn decoded(bytes: &[u8]) -> Decoded {
    let text = String::from_utf8_lossy(bytes);
    let mut notes = String::new();
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push_str("; it is not UTF-8, what cannot be shown stands as \u{fffd}");
    }
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        notes.push_str("; lines end with CRLF");
    }
    Decoded { text: text.into_owned(), notes }
}

/// Returns the number of bytes at the start that belong to a character before it.
pub(crate) fn continuation(bytes: &[u8]) -> usize {
    let inside = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    // Three of them are the end of a character, or no UTF-8 at all: then all of it is shown as it is.
    if bytes.get(inside).is_some_and(|byte| (0x80..0xC0).contains(byte)) { 0 } else { inside }
}

/// Returns the end of the last whole character.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // Only a character that is cut off at the end has no length of its error.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}
