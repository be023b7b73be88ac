//! The calls of the latest answer: from the request over the gate to the result.
//!
//! Calls are taken in the order of the answer. Adjacent reads run at once. Calls with effect are a sequence: each is ruled
//! on just before its start, and after one that fails, is denied or is lost, the later ones are skipped.

pub(crate) mod apply;
mod arguments;
pub mod gate;
mod next;
mod state;
mod subgoal;

pub(crate) use apply::apply;
pub use arguments::InvalidArguments;
pub(crate) use next::next;
pub use state::{Call, CallState, Calls, Settlement};

#[cfg(test)]
mod tests;
