//! The error of a rewritten text.

/// The reason why a rewritten text does not keep the content, as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(super) String);
