//! The contract of Bloomery: the custom resources that people write, and the documents that the operator and the worker
//! exchange.
//!
//! This crate does no IO, reads no clock and has no client. Every other crate may depend on it
//! (`docs/explanation/architecture.md` shows the dependencies).

pub mod address;
pub mod canonical;
pub mod children;
pub mod conditions;
pub mod core_tools;
pub mod docs;
pub mod duration;
pub mod fallback;
pub mod fault;
pub mod features;
mod lenient;
pub mod limits;
pub mod lists;
pub mod memory_scope;
pub mod named_tools;
pub mod names;
pub mod nearest;
pub mod outcome;
pub mod persona;
pub mod pod;
pub mod probe;
pub mod report;
pub mod resources;
pub mod run;
pub mod scripts;
pub mod sidecar;
pub mod skill_directory;
pub mod subskills;
pub mod text;
pub mod tool_pattern;
pub mod tool_pins;
pub mod unknown;
pub mod v1alpha1;

pub use canonical::Digest;
