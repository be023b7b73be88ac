//! Probes the MCP server of a Skill (`docs/explanation/design.md`, section 7).
//!
//! The operator opens no connection into a tenant. A probe is a short pod of the worker's image: it lists the tools of the server,
//! compiles the rules of the Skill against them, and reports both. [`crate::report`] records the report in `status.tools`.
//!
//! A probe starts once the server is available, and again when [`subject`] changes. The pod itself records the number of its try.

mod apply;
mod build;
mod decide;
mod observe;
mod subject;

pub use apply::run;
pub use decide::ProbeState;
pub use subject::is_outdated;

#[cfg(test)]
mod tests;
