//! Decoding of file contents.

use crate::root::Opened;
use cap_std::fs::FileExt;
use std::io;

/// The size of the beginning of a file that is checked for NUL bytes, in bytes. Git checks as many.
const BINARY_CHECK_BYTES: usize = 8000;

/// Decoded text for the model, and notes about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The text.
    pub(crate) text: String,
    /// The notes, each with a leading `; `.
    pub(crate) notes: String,
}

/// Returns whether a file is binary, that is, has a NUL byte near its beginning.
pub(crate) fn is_binary(opened: &Opened) -> io::Result<bool> {
    let mut beginning =
        vec![0; BINARY_CHECK_BYTES.min(usize::try_from(opened.metadata.len()).unwrap_or(BINARY_CHECK_BYTES))];
    let read = opened.file.read_at(&mut beginning, 0)?;
    Ok(has_nul(beginning.get(..read).unwrap_or_default()))
}

/// Returns whether the bytes contain a NUL byte.
pub(crate) fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_some()
}

/// Decodes bytes as UTF-8. If invalid bytes were replaced, a note says so, because the text cannot be written back unchanged.
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let text = String::from_utf8_lossy(bytes);
    let mut notes = String::new();
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push_str("; the file is not UTF-8, invalid bytes are shown as \u{fffd}");
    }
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        notes.push_str("; lines end with CRLF");
    }
    Decoded { text: text.into_owned(), notes }
}

/// Returns the number of bytes at the start that belong to a character that begins before them.
pub(crate) fn leading_continuation_bytes(bytes: &[u8]) -> usize {
    let count = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    // A character has at most three continuation bytes. More of them are not UTF-8, so none is skipped.
    if bytes.get(count).is_some_and(|byte| (0x80..0xC0).contains(byte)) { 0 } else { count }
}

/// Returns the length without an incomplete character at the end.
pub(crate) fn end_of_complete_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // An error without a length means that the last character is incomplete.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}
