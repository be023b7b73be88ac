//! The error of a call's arguments.

/// The reason why the arguments of a call cannot be used, as a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidArguments(String);

impl InvalidArguments {
    pub(crate) fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}
