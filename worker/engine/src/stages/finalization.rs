//! The finalization gate: checks an answer before it counts (`docs/explanation/engine.md`, section 3).
//!
//! In this stage, an attempt is a draft that the gate has checked, as in `Job.status.gates.finalization.attempts`. Elsewhere,
//! an attempt is a pod of the Job.

mod feedback;
mod gate;
pub mod judge;
mod next;
mod state;

pub(crate) use feedback::faults;
pub(crate) use gate::result;
pub(crate) use next::next;
pub(crate) use state::{Finalization, NEEDS_PERSON};

#[cfg(test)]
mod tests;
