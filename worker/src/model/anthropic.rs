//! Anthropic Messages.

pub(super) mod answer;
mod raw;
pub(super) mod request;
pub(super) mod stream;

/// The version of the protocol, which its every request names.
pub(super) const VERSION: &str = "2023-06-01";
