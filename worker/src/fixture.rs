//! Fixtures for the tests of this crate:
//!
//! - `stand`: the environment of an attempt, with all its parts.
//! - `shop`: the tools that the model calls, with a record of their effects.
//! - `desk`: the people who decide and answer.
//! - `focus_disk`: a disk that calls a test when the focus cache is read.
//! - `frozen`: a disk on which an attempt freezes when it adds a segment to the log.
//! - `volatile`: a disk that loses unsynced data at a power loss.

pub(crate) mod desk;
pub(crate) mod focus_disk;
pub(crate) mod frozen;
pub(crate) mod shop;
pub(crate) mod stand;
pub(crate) mod volatile;
