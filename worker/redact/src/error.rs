//! The errors of redaction.

use super::forms::MAX_VALUE_BYTES;

/// The reason that an event cannot be redacted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The event is invalid once its values are redacted.
    #[error(
        "it is invalid once the secrets in it are redacted ({0}), because the value of one of the Job's secrets is a word that \
         all events contain. Choose another value for that secret"
    )]
    Invalid(#[from] serde_json::Error),
    /// A code in the event would be read as another one once its values are redacted.
    #[error(
        "one of its codes would change once the secrets in it are redacted, because the value of one of the Job's secrets is a word \
         that all events contain. Choose another value for that secret"
    )]
    CodeChanged,
    /// A value is larger than [`MAX_VALUE_BYTES`].
    #[error(
        "the value of the secret `{0}` has more than {MAX_VALUE_BYTES} bytes, which is too large to be redacted. Use a smaller value"
    )]
    Oversized(String),
    /// All values together are too large to search for.
    #[error("the secrets of the Job are too large together to be redacted. Use smaller or fewer secrets")]
    TooLarge,
}
