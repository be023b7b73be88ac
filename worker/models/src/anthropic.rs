//! The protocol of Anthropic Messages.

pub(crate) mod answer;
mod raw;
pub(crate) mod request;
pub(crate) mod stream;

/// The version of the protocol. Every request sends it in a header.
pub(crate) const VERSION: &str = "2023-06-01";
