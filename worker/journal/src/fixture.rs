//! Fixtures for the tests of this crate and, with the feature `fixture`, of the crates that depend on it.

pub mod checks;
pub mod failing;
pub mod faulty;
mod run;

pub use run::{SOURCE, claim_at_once, run, skill};
