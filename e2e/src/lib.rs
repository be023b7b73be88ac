//! The harness of Bloomery's black-box stories, which run on a real control plane.
//!
//! The servers that the stories and the demo run in the cluster are in `bloomery-testkit`. This crate has a thin binary
//! for the image of each.

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "it is part of tests, which fail by panicking"
)]
pub mod harness;
