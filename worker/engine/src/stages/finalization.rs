//! The finalization gate: checks an answer before it counts (seed 002, section 4.4; `docs/explanation/engine.md`, section 3).
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
pub(crate) use state::{CLARIFY, Finalization};

#[cfg(test)]
mod tests;
