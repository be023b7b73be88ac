//! The event log of one Job on disk, which cannot fork (`docs/explanation/engine.md`, section 1).
//!
//! [`Log`] buffers lines until the worker needs them to be durable. The lines then become one **segment**: an immutable file,
//! linked exclusively to a name that contains the number of its first line. Two workers that continue the same log need the same
//! name. The link of one of them fails, so that worker detects that it is superseded before it acts.
//!
//! | module | contents |
//! |---|---|
//! | [`claim`](mod@claim) | reads the log and begins the next epoch |
//! | [`Store`], [`Segments`] | the directory of a log, for its writer and for readers |
//! | [`segment`] | the names of segments, and the lines in one |
//! | [`files`] | the file operations that the log needs, which tests replace |
//! | [`clock`] | the times of events |

mod claim;
pub mod clock;
mod error;
pub mod files;
mod log;
pub mod segment;
mod segments;
mod store;
mod volume;

pub use claim::{Claim, Claimed, ClaimingAttempt, claim};
pub use error::Error;
pub use log::Log;
pub use segments::Segments;
pub use store::{JOBS, Store};
pub use volume::check as check_volume;

#[cfg(any(test, feature = "fixture"))]
#[allow(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "it is part of tests, which fail by panicking"
)]
pub mod fixture;
#[cfg(test)]
mod tests;
