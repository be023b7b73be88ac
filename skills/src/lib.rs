//! Reads, checks and converts Skills, and the manifests of the kinds that belong to them, from any source.
//!
//! A source is read into [`Documents`]: trees in which every value knows its line and column. [`form`] says what a
//! document is:
//!
//! - [`manifest`] checks a manifest of one of our kinds and finds what the API server would refuse.
//! - [`import`] turns the older dialect, the `snake_case` YAML of `domain.yaml` and skill files (seeds 000 and 002), into
//!   a [`Skill`]. A field that a `Skill` cannot express is reported, never dropped silently.
//!
//! Both report all faults of a document at once. A Skill with faults is still read as far as possible, as a [`Draft`], so
//! that a later check can report its findings in the same run.
//!
//! Reading is bounded in size, depth and number of values. Aliases are refused, so no input can be multiplied.
//!
//! This crate does no IO: callers hand over bytes and print the findings.
//!
//! [`Skill`]: bloomery_crds::v1alpha1::Skill

mod draft;
mod finding;
mod import;
mod manifest;
mod naming;
mod schema;
mod tree;
mod yaml;

pub use draft::Draft;
pub use finding::{Finding, Severity};
pub use import::{Imported, Options, import};
pub use manifest::{Checked, Form, approver_fault, form, manifest, name_fault};
pub use tree::{Node, locate};
pub use yaml::{Document, Documents, MAX_BYTES, MAX_DEPTH, MAX_DOCUMENTS, MAX_NODES, documents};

#[cfg(test)]
mod tests;
