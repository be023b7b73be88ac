//! The questions to people: what the model asks with `ask_user`, and what stages ask.
//!
//! Every stage asks with [`ask`]. The reply to a call of `ask_user` is taken here; each other reply is taken by the stage
//! that asked.

mod apply;
mod next;
mod state;

pub(crate) use apply::apply;
pub(crate) use next::next;
pub use state::{OpenQuestion, Questions, StrayReply};
pub(crate) use state::{Refused, ask};

#[cfg(test)]
mod tests;
