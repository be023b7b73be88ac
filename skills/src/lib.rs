//! Reads and checks Skills and manifests of the other kinds of Bloomery, and converts skill files of the older format.
//!
//! [`yaml`] reads an input into [`Documents`]: trees in which every value has its line and column. [`Document::form`] returns
//! the format of a document:
//!
//! - [`check_manifest`] checks a manifest of a kind of Bloomery, and finds the faults that the API server would refuse.
//! - [`import`] converts the older format, called the dialect: the `snake_case` YAML of `domain.yaml` and skill files. The
//!   result is a [`Skill`]. It reports each field that a `Skill` cannot express.
//!
//! [`check`] calls one of them, and then evaluates the CEL rules of the CRDs. [`repository`] converts the skills of a repository,
//! which are directories: one at a time.
//!
//! All faults of a document are reported at once. A Skill with faults is also read as far as possible, as a [`Draft`]. So the
//! lint of the engine can check it in the same run.
//!
//! Terms in this crate:
//!
//! - A *fault* is a sentence about what is wrong with a value.
//! - A [`Finding`] is an error or a warning for people: a fault with its severity, its place in the document, and a remedy. The
//!   engine's lint has a `Finding` of its own, with an API path and no place. [`Finding::at_api_path`] adds the place.
//! - An *API path* leads to a field by the names of the API: `spec.outputContract.schema`. A *document path* leads to it by the
//!   names in the document: `output_contract.schema` in the dialect.
//!
//! Inputs are bounded in size, depth and number of values. Aliases are refused, so the values of an input cannot multiply.
//!
//! This crate does no IO. Callers pass bytes and print the findings.
//!
//! [`Skill`]: bloomery_crds::v1alpha1::Skill

pub mod bindings;
mod check;
mod checked;
mod document;
mod draft;
mod finding;
mod import;
pub mod invokers;
pub mod lists;
mod manifest;
pub mod names;
mod naming;
pub mod repository;
mod rules;
mod schema;
mod tree;
pub mod yaml;

pub use check::check;
pub use checked::CheckedDocument;
pub use document::{Document, Documents, Form};
pub use draft::Draft;
pub use finding::{Finding, FindingKind, Severity};
pub use import::{ImportOptions, import};
pub use manifest::check_manifest;
pub use tree::{Node, locate};

#[cfg(test)]
mod tests;
