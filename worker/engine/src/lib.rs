//! The pure engine: a conversation is a fold of its events, and [`step::next`] says what to do.
//!
//! Nothing here does IO, reads a clock or draws a random number (`hack/check-pure` lists what may be used of the
//! standard library, and which crates; `docs/architecture.md` says what that leaves to trust): time and ids come in
//! with the events, so a replay decides nothing again and ends in the same state
//! (seed 004: "the conversation's state is a pure function of its applied events").

// Tests may start a thread and print.
#![cfg_attr(test, allow(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ask;
pub mod bindings;
pub mod bootstrap;
pub mod condition;
pub mod conversation;
pub mod endpoint;
pub mod event;
pub mod gate;
pub mod intent;
pub mod line;
pub mod lint;
pub mod offload;
pub mod people;
pub mod polish;
pub mod projection;
pub mod prompt;
pub mod run;
pub mod selection;
pub mod step;
pub mod tool;
pub mod turn;

pub use conversation::Conversation;
pub use event::Event;
pub use step::{Step, next};
