//! The calls of the latest answer: the request, the ruling of the gate, and the result.
//!
//! Calls run in the order of the answer. Adjacent reads run at once. Calls with effect run one after the other, and the gate
//! rules on each just before its start. A call that invokes a Skill ends with its child. After a call that failed, was denied or was lost, later calls with effect are skipped.

pub(crate) mod apply;
mod arguments;
pub mod child;
pub mod gate;
mod next;
mod script_ends;
mod state;
mod subgoal;
mod undeclared;

pub(crate) use apply::apply;
pub use arguments::InvalidArguments;
pub(crate) use next::next;
pub use script_ends::ScriptEnds;
pub use state::{Call, CallState, Calls, Child, Settlement};

#[cfg(test)]
mod tests;
