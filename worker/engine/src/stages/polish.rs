//! The reply polisher: rewrites, in the persona's voice, an answer that passed the finalization gate
//! (`docs/explanation/engine.md`, section 3).

mod next;
mod prompt;
mod state;

pub(crate) use next::next;
pub(crate) use state::{Polishing, wants_polish};

#[cfg(test)]
mod tests;
