//! The intent detection: finds the intent of the Skill that the goal means.

mod next;
pub mod prompt;
mod state;

pub(crate) use next::next;
pub(crate) use state::IntentStage;

#[cfg(test)]
mod tests;
