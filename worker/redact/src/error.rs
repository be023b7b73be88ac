//! Why redaction fails.

use super::forms::MAX_VALUE_BYTES;

/// Why an event cannot be redacted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The event is invalid without a value.
    #[error(
        "it means nothing without the value of a secret ({0}): a secret of the Job is a word that events are made of. \
         Choose another value"
    )]
    Word(#[from] serde_json::Error),
    /// A value is larger than [`MAX_VALUE_BYTES`].
    #[error(
        "the value of the secret `{0}` has more than {MAX_VALUE_BYTES} bytes, and cannot be kept out of texts: make it smaller"
    )]
    Oversized(String),
    /// All values together are too large to search for.
    #[error("the secrets of the Job are too large together to be kept out of texts")]
    Blind,
}
