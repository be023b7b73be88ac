//! The pure engine: a conversation is a fold of its events, and [`next`] returns its next step.
//!
//! The engine does no IO, reads no clock and draws no random numbers; `hack/check-pure` checks this. Times and ids come in
//! with the events, so a replay of the log ends in the same state (`docs/explanation/engine.md`, section 1).

// Tests may start a thread and print.
#![cfg_attr(test, allow(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod amount;
pub mod bindings;
pub mod budget;
pub mod catalogue;
pub mod condition;
pub mod content;
pub mod conversation;
pub mod core_tools;
pub mod decisions;
pub mod endpoint;
pub mod event;
#[cfg(test)]
pub(crate) mod fixture;
pub mod history;
pub mod json_block;
pub mod line;
pub mod lint;
mod next;
pub mod offload;
pub mod people;
mod progress;
pub mod projection;
pub mod record;
pub mod rules;
pub mod run;
pub mod schema;
mod shared;
pub mod stage_prompt;
pub mod stages;
pub mod step;
pub mod tool;
mod tool_policy;
pub mod validation;

pub use conversation::Conversation;
pub use event::Event;
pub use next::next;
pub use step::Step;
