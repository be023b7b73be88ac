//! A lost call: a call with effect whose answer was lost. A person finds out whether it happened
//! (`docs/explanation/engine.md`, section 1).

mod answer;
mod next;
mod state;

pub(crate) use next::next;
pub(crate) use state::LostCall;

#[cfg(test)]
mod tests;
