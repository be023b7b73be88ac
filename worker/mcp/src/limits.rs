//! Bounds on what is read from a server.

/// The largest body that is read, in bytes: an answer, or all events of a stream.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The most tools of a server.
pub(crate) const MAX_TOOLS: usize = 512;
