//! The error of a call to an endpoint.

/// The reason why a call is not sent, as a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl From<String> for Error {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for Error {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
