//! The ending: the outcome of a conversation, its limits, and its cancellation.

mod cancel;
mod finish;
pub(crate) mod limits;
mod next;
mod state;

pub(crate) use finish::{finished, skip_unsettled_calls};
pub(crate) use next::{ended, next};
pub(crate) use state::Ending;

#[cfg(test)]
mod tests;
