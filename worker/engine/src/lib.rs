//! The pure engine: a conversation is a fold of its events, and [`step::next`] says what to do.
//!
//! Nothing here does IO, reads a clock or draws a random number (`clippy.toml` and Cargo see to it): time and
//! ids come in with the events, so a replay decides nothing again and ends in the same state
//! (`docs/architecture.md`; seed 004: "the conversation's state is a pure function of its applied events").

pub mod ask;
pub mod bootstrap;
pub mod condition;
pub mod conversation;
pub mod event;
pub mod gate;
pub mod intent;
pub mod line;
pub mod lint;
pub mod offload;
pub mod polish;
pub mod projection;
pub mod prompt;
pub mod run;
pub mod step;
pub mod tool;
pub mod turn;

pub use conversation::Conversation;
pub use event::Event;
pub use step::{Step, next};
