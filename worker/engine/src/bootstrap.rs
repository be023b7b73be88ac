//! What is made of a Skill before the first model call, without one (seed 002, section 4.1): compiled guardrails,
//! the text guardrails of the prompt, and workflows as sub-goals.
//!
//! Pure functions of the Skill and the catalogue: a resumed conversation makes the same again.

pub mod guardrails;
pub mod rule;
pub mod text;
pub mod workflows;
