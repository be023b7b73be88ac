//! The stages of a conversation (seed 002), one module each.
//!
//! A stage has its state with an `apply`, which folds events into it, and a `next`, which returns the stage's next step
//! or nothing. Its gates and prompts are pure functions of values.

pub(crate) mod approval;
pub mod calls;
pub(crate) mod ending;
pub mod finalization;
pub mod intent;
pub(crate) mod lost_call;
pub(crate) mod opening;
pub mod polish;
pub mod questions;
pub(crate) mod request;
pub mod selection;
