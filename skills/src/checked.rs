//! The result of checking a document.

use crate::document::Document;
use crate::draft::Draft;
use crate::finding::{Finding, Severity};
use crate::tree::Node;
use bloomery_crds::v1alpha1::Skill;
use serde_json::Value;

/// A document that was checked.
#[derive(Debug)]
pub struct Checked {
    /// The kind of the object, if it is a kind of Bloomery.
    pub kind: Option<String>,
    /// The tree with the field names of the API, and the places of the document.
    pub root: Node,
    /// The object with the field names of the API, without refused values.
    pub object: Value,
    /// The Skill, if the document is one and has no error.
    pub skill: Option<Skill>,
    /// The readable part of the Skill, for further checks only.
    pub draft: Option<Draft>,
    /// The address of the MCP server in the document. Only with [`Options::local`](crate::Options::local).
    pub mcp_address: Option<String>,
    /// The findings, in the order of the document.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Sorts the findings, and reads the Skill if the document is one and has no error.
    pub(crate) fn conclude(mut self, document: &Document) -> Self {
        self.findings.sort_by_key(Finding::position);
        let has_error = self.findings.iter().any(|finding| finding.severity == Severity::Error);
        if has_error || document.is_faulty() || self.kind.as_deref() != Some("Skill") {
            return self;
        }
        match serde_json::from_value(self.object.clone()) {
            Ok(skill) => self.skill = Some(skill),
            Err(error) => self.findings.push(document.error(format!("cannot be read as a Skill: {error}"))),
        }
        self
    }
}
