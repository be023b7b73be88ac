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
    /// The kind of the object, where it is one of ours.
    pub kind: Option<String>,
    /// The tree in which a path of the API is looked up. Its places are those of the document.
    pub root: Node,
    /// The object as the API has it, without refused values.
    pub object: Value,
    /// The Skill, where the document is one and has no error.
    pub skill: Option<Skill>,
    /// As much of the Skill as could be read, for findings only.
    pub draft: Option<Draft>,
    /// The address of the MCP server as the document has it; only where [`Options::local`](crate::Options::local) is set.
    pub mcp_address: Option<String>,
    /// The findings, in the order of the document.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Sorts the findings, and reads the Skill if the document is one without errors.
    pub(crate) fn concluded(mut self, document: &Document) -> Self {
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
