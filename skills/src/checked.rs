//! The result of a check of a document.

use crate::document::Document;
use crate::draft::Draft;
use crate::finding::{Finding, Severity};
use crate::tree::Node;
use bloomery_crds::v1alpha1::Skill;
use serde_json::{Value, json};

/// The result of a check: what could be read of a document, and the findings.
#[derive(Debug)]
pub struct CheckedDocument {
    /// The kind of the object. `None` if it is no kind of Bloomery.
    pub kind: Option<String>,
    /// The content with the field names of the API. Each value has its place in the document.
    pub root: Node,
    /// The object with the field names of the API, and without unknown and empty fields. If it has errors, a value of a wrong
    /// type may be null.
    pub object: Value,
    /// The Skill, if the document is one and has no error.
    pub skill: Option<Skill>,
    /// The readable part of the Skill. For further checks only: never run it.
    pub draft: Option<Draft>,
    /// The address of the MCP server that the document names. Only with [`ImportOptions::local`](crate::ImportOptions::local).
    pub mcp_address: Option<String>,
    /// YAML comments to write after the manifest of an import: an MCP server and Models that a person must complete.
    pub suggestions: String,
    /// The findings in the order of the document. Those of the CEL rules follow.
    pub findings: Vec<Finding>,
}

impl CheckedDocument {
    /// Returns the result for a document that becomes a Skill, before anything of it is read.
    pub(crate) fn of_skill(root: Node) -> Self {
        Self {
            kind: Some("Skill".to_owned()),
            root,
            object: json!({}),
            skill: None,
            draft: None,
            mcp_address: None,
            suggestions: String::new(),
            findings: Vec::new(),
        }
    }

    /// Returns the kind and the name of the object, such as `Skill/cs-tier-1`, as far as it has them.
    pub fn object_name(&self) -> Option<String> {
        let name = self.object.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let kind = self.kind.as_ref()?;
        Some(name.map_or_else(|| kind.clone(), |name| format!("{kind}/{name}")))
    }

    /// Sorts the findings, and reads the Skill if the document is one and has no error.
    pub(crate) fn sort_and_read_skill(mut self, document: &Document) -> Self {
        self.findings.sort_by_key(Finding::position);
        let has_error = self.findings.iter().any(|finding| finding.severity == Severity::Error);
        if has_error || document.has_refused_values() || self.kind.as_deref() != Some("Skill") {
            return self;
        }
        match serde_json::from_value(self.object.clone()) {
            Ok(skill) => self.skill = Some(skill),
            Err(error) => self.findings.push(document.error(format!("cannot be read as a Skill: {error}"))),
        }
        self
    }
}
