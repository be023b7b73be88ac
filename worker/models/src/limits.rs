//! Limits on answers and quotes.

/// The largest answer that is read, in bytes.
pub const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// The longest quote of a server's text in an error message, in bytes.
pub(crate) const MAX_QUOTE_BYTES: usize = 300;
