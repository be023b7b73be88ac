//! The opening: lists the tools, binds the resources, gathers the context, and renders the system prompt.

mod next;
pub(crate) mod prompt;
mod skill_sections;
mod state;

pub(crate) use next::next;
pub(crate) use state::Opening;

#[cfg(test)]
mod tests;
