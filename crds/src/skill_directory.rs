//! The default bounds of a Skill's directory in the memory. Workers apply them, and the operator passes only other ones.

/// The largest size of the large tool results that are kept, in bytes.
pub const FOCUS_CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// The age from which on the log of an ended run is pruned, in seconds.
pub const LOG_MAX_AGE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// The largest number of logs of ended runs.
pub const LOG_MAX_COUNT: u32 = 1000;

/// The largest size of all logs of ended runs, in bytes.
pub const LOG_MAX_BYTES: u64 = 1024 * 1024 * 1024;
