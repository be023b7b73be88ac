//! Reads, checks and converts Skills, and the manifests of the kinds that belong to them, from any source.
//!
//! A source is read into [`Documents`] (so far [`yaml`]): trees in which every value knows its line and column.
//! [`Document::form`] says what a document is:
//!
//! - [`manifest`] checks a manifest of one of our kinds and finds what the API server would refuse.
//! - [`import`] turns the older dialect, the `snake_case` YAML of `domain.yaml` and skill files (seeds 000 and 002), into
//!   a [`Skill`]. A field that a `Skill` cannot express is reported, never dropped silently.
//!
//! [`check`] does the one or the other, and then evaluates the rules in CEL that the API server would apply.
//!
//! All faults of a document are reported at once. A Skill with faults is still read as far as possible, as a [`Draft`], so
//! that a later check (the engine's lint) can report its findings in the same run.
//!
//! Reading is bounded in size, depth and number of values. Aliases are refused, so no input can be multiplied.
//!
//! This crate does no IO: callers hand over bytes and print the findings.
//!
//! [`Skill`]: bloomery_crds::v1alpha1::Skill

pub mod bindings;
mod check;
mod checked;
mod document;
mod draft;
mod finding;
mod import;
mod manifest;
pub mod names;
mod naming;
mod rules;
mod schema;
mod tree;
pub mod yaml;

pub use check::check;
pub use checked::Checked;
pub use document::{Document, Documents, Form};
pub use draft::Draft;
pub use finding::{Finding, Severity};
pub use import::{Options, import};
pub use manifest::manifest;
pub use tree::{Node, locate};

#[cfg(test)]
mod tests;
