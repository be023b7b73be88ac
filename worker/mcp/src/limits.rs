//! Limits on the data that is read from a server.

use bloomery_crds::v1alpha1::Engine;

/// The size limit of the answer of an API, and of a list of tools, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The default of the size limit of an answer of a server, in bytes. An answer is one message, or all events of a stream.
pub(crate) const DEFAULT_ANSWER_BYTES: usize = Engine::DEFAULT_MAX_RESULT_BYTES as usize;

/// The largest size limit of an answer, in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = Engine::LARGEST_MAX_RESULT_BYTES as usize;

/// The largest number of tools of a server.
pub(crate) const MAX_TOOLS: usize = 512;
