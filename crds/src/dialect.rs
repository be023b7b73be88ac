//! What people write: the manifest of a kind of ours, and the dialect of the seeds (000, 002), each read with the
//! line and column of every value.
//!
//! The dialect is the `snake_case` YAML of `domain.yaml` and skill files. [`import`] turns it into a [`Skill`]; a
//! field that a `Skill` cannot say is named in a finding, never dropped silently. [`manifest`] reads what the API
//! server would be given, and finds what it would refuse. Both find all faults at once.
//!
//! What can be read of a Skill with faults is a [`Draft`], for whoever looks for more of them.
//!
//! Reading is bounded in size, depth and number of values; aliases are refused, so nothing can be multiplied.
//!
//! [`Skill`]: crate::v1alpha1::Skill

mod ambiguous;
mod draft;
mod finding;
mod guardrails;
mod import;
mod manifest;
mod mcp_server;
mod naming;
mod node;
mod patterns;
mod reader;
mod rename;
mod scalar;
mod schema;

pub use draft::Draft;
pub use finding::{Finding, Severity};
pub use import::{Imported, Options, import};
pub use manifest::{Checked, Form, approver_fault, form, manifest, name_fault};
pub use node::{Node, locate};
pub use reader::{Document, Documents, MAX_BYTES, MAX_DEPTH, MAX_DOCUMENTS, MAX_NODES, documents};

#[cfg(test)]
mod tests;
