//! The operator: provisions Skills, runs Jobs, accepts reports.
//!
//! `main.rs` starts it. The Skill and the Job controller have the same steps, `fetch -> validate -> build -> apply ->
//! status`, each in a module of that name. Validate, build and status are pure. Each step takes the result of the step
//! before it, so only built objects are applied, and a status is computed from what was applied. The shared state of
//! all controllers is in [`context`].

pub mod apply;
pub mod approval;
pub mod caches;
pub mod children;
mod client;
pub mod context;
pub mod controller;
pub mod error;
pub mod events;
mod external_mcp;
mod first_seen;
pub mod health;
pub mod job;
#[cfg(test)]
mod kstatus;
pub mod leader;
mod listen;
pub mod listing;
pub mod logs;
mod mcp_container;
pub mod memory_limit;
pub mod metrics;
pub mod model;
pub mod network;
pub mod owned;
mod pod_deletion;
pub mod pod_seals;
pub mod recent_revisions;
pub mod report;
pub mod server_tokens;
pub mod settings;
pub mod skill;
pub mod status;
pub mod tenant;
pub mod wiring;
mod worker_pod;

pub use context::Context;
pub use error::Error;
