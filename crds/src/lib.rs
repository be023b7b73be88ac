//! The contract of Bloomery: what people write, what the operator and the worker say to each other.
//!
//! Nothing here does IO, reads a clock or knows a client: every other crate may depend on this one
//! (`docs/explanation/architecture.md` has the directions).

pub mod canonical;
pub mod conditions;
pub mod fallback;
pub mod limits;
pub mod names;
pub mod nearest;
pub mod outcome;
pub mod persona;
pub mod pod;
pub mod report;
pub mod resources;
pub mod run;
pub mod text;
pub mod v1alpha1;

pub use canonical::Digest;
