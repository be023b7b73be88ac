//! The validation of a Skill: a Job tests the features one after another, and its log has their results. The test of a feature is a
//! conversation with a log of its own ([`crate::validation`]).

mod next;
mod state;

pub use next::{ValidationStep, next};
pub(crate) use state::Validation;
