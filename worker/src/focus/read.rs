//! `focus_read`: returns a part of a stored text to the model.

use super::{FocusCache, kind};
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_engine::core_tools::focus::MAX_FOCUS_BYTES;
use bloomery_journal::files::Files;
use bloomery_redact::Redactor;
use serde::Deserialize;

/// The arguments of `focus_read`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    handle: String,
    #[serde(default)]
    offset: u64,
    bytes: Option<u64>,
}

/// An error of `focus_read`. The message is for the model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments do not have the declared form.
    #[error("The arguments of focus_read cannot be used: {0}.")]
    InvalidArguments(#[from] serde_json::Error),
    /// The argument `handle` is not a digest.
    #[error("`{0}` is not a handle. Copy the handle in the excerpt, which begins with `sha256:`.")]
    NotAHandle(String),
    /// The cache no longer has the entry.
    #[error("The result {0} was removed. Call the tool again if you need it, and request less.")]
    Removed(Digest),
    /// The entry is not text.
    #[error("{digest} is {kind} of {bytes} bytes, which cannot be read as text.")]
    NotText {
        /// The handle.
        digest: Digest,
        /// The detected format.
        kind: &'static str,
        /// The size.
        bytes: usize,
    },
    /// The argument `offset` is larger than the text.
    #[error("The result has {bytes} bytes, so offset {offset} is behind its end.")]
    BehindEnd {
        /// The size.
        bytes: usize,
        /// The argument.
        offset: u64,
    },
}

impl FocusCache {
    /// Performs a call of `focus_read`: returns the requested part, in whole characters, and the offset of the next part. The text was
    /// stored without secrets. Secrets that were registered later are redacted before the text is cut.
    ///
    /// # Errors
    /// If the arguments are invalid, or the entry is absent or not text.
    pub fn read(&self, files: &(impl Files + ?Sized), arguments: &str, redactor: &Redactor) -> Result<String, Error> {
        let Arguments { handle, offset, bytes } = serde_json::from_str(arguments)?;
        let digest: Digest = handle.trim().parse().map_err(|_| Error::NotAHandle(bounded(&handle, 80)))?;
        let content = self.get(files, &digest).ok_or_else(|| Error::Removed(digest.clone()))?;
        let text = String::from_utf8(content).map_err(|error| {
            let content = error.as_bytes();
            Error::NotText { digest, kind: kind::detect(content), bytes: content.len() }
        })?;
        let text = redactor.redact_owned(text);
        let bytes = bytes.unwrap_or(MAX_FOCUS_BYTES).clamp(1, MAX_FOCUS_BYTES);
        part(&text, offset, bytes).ok_or(Error::BehindEnd { bytes: text.len(), offset })
    }
}

/// Returns at most `bytes` of the text from the character at `offset`; `None` if `offset` is not within the text.
fn part(text: &str, offset: u64, bytes: u64) -> Option<String> {
    let offset = usize::try_from(offset).ok().filter(|offset| *offset < text.len())?;
    let start = text.floor_char_boundary(offset);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut end = text.floor_char_boundary(start.saturating_add(bytes).min(text.len()));
    if end == start {
        end = text.ceil_char_boundary(start + 1);
    }
    let whole = text.len();
    let next = if end == whole { "end of result".to_owned() } else { format!("continue with offset {end}") };
    Some(format!("{}\n[bytes {start} to {end} of {whole}; {next}]", text.get(start..end)?))
}

#[cfg(test)]
mod tests {
    use super::part;
    use proptest::prelude::*;

    #[test]
    fn a_part_ends_with_its_range_and_the_next_offset() {
        assert_eq!(part("0123456789", 0, 4).unwrap(), "0123\n[bytes 0 to 4 of 10; continue with offset 4]");
        assert_eq!(part("0123456789", 4, 99).unwrap(), "456789\n[bytes 4 to 10 of 10; end of result]");
        assert_eq!(part("0123456789", 10, 1), None);
        assert_eq!(part("", 0, 1), None);
        assert_eq!(part("x", u64::MAX, u64::MAX), None);
        assert_eq!(part("a€b", 2, 1).unwrap(), "€\n[bytes 1 to 4 of 5; continue with offset 4]");
    }

    proptest! {
        #[test]
        fn the_parts_in_order_are_the_whole_text(text in ".{1,60}", bytes in 1_u64..9) {
            let (mut read, mut offset) = (String::new(), 0);
            loop {
                let answer = part(&text, offset, bytes).unwrap();
                let (part, note) = answer.rsplit_once("\n[bytes ").unwrap();
                read.push_str(part);
                let Some(next) = note.strip_suffix(']').unwrap().rsplit_once("offset ") else { break };
                offset = next.1.parse().unwrap();
            }
            prop_assert_eq!(read, text);
        }
    }
}
