//! The gates: pure decisions over what stands in the log. A gate that cannot decide does not allow.

pub mod answer;
pub mod catalogue;
pub mod core_tools;
pub mod feedback;
pub mod finalization;
pub mod judge;
pub mod objection;
pub mod pre_tool;
pub mod rules;
pub mod schema;
