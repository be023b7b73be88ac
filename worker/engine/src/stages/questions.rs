//! The questions to people. The model asks with `ask_user`, and stages ask with [`ask`].
//!
//! This stage takes the replies to `ask_user`. Every other stage takes the replies to its own questions.

mod apply;
mod next;
mod state;

pub(crate) use apply::apply;
pub(crate) use next::next;
pub use state::{OpenQuestion, Questions, StrayReply};
pub(crate) use state::{RefusedReply, ask};

#[cfg(test)]
mod tests;
