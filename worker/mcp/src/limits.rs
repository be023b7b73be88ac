//! Limits on the data that is read from a server.

/// The size limit of a body, in bytes. A body is one answer, or all events of a stream.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The largest number of tools of a server.
pub(crate) const MAX_TOOLS: usize = 512;
