//! The stages of a conversation, one module each (`docs/explanation/architecture.md`).
//!
//! In a stage, `apply` folds an event into the state, and `next` returns the next step of the stage, or nothing. `next` decides
//! which events to record; it changes no state. Gates and prompts are pure functions of values.
//!
//! Most stages keep their own state. Calls and questions are in `Shared`, because several stages read and change them.
//!
//! `request` is no stage: it builds the requests to models for all of them. The main loop (`Stage::Plan`) has no module: its
//! requests are in `request`, and the calls of its answers in `calls`.

pub(crate) mod approval;
pub mod attachment;
pub mod calls;
pub(crate) mod ending;
pub mod finalization;
pub mod intent;
pub(crate) mod lost_call;
pub(crate) mod opening;
pub(crate) mod polish;
pub mod questions;
pub(crate) mod request;
pub mod selection;
pub mod validation;
