//! The error of compiling a schema.

/// The reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    pub(super) fn new(reason: String) -> Self {
        Self(reason)
    }
}
