//! Documents: the parsed form of an input.

use crate::finding::Finding;
use crate::tree::{Node, Value};
use bloomery_crds::names::GROUP;

/// One document of an input.
#[derive(Debug, Clone)]
pub struct Document {
    /// The content.
    pub(crate) root: Node,
    /// The document paths of the values that use an unsupported part of YAML: a duplicate key, an alias or a tag. Their content is
    /// unknown. The empty path stands for the whole document.
    pub(crate) refused: Vec<String>,
}

/// The documents of an input.
#[derive(Debug, Default)]
pub struct Documents {
    /// The documents that could be read, without empty ones.
    pub documents: Vec<Document>,
    /// The faults of the input itself.
    pub findings: Vec<Finding>,
}

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A manifest of a kind of Bloomery.
    Manifest,
    /// A Skill in the older dialect.
    Dialect,
    /// An object of another API.
    Foreign,
}

impl Document {
    /// Returns the format of the document. A manifest has an `apiVersion` or a `kind`; a document of the dialect has neither.
    pub fn form(&self) -> Form {
        let Some(version) = self.root.get("apiVersion") else {
            return if self.root.get("kind").is_some() { Form::Manifest } else { Form::Dialect };
        };
        match version.text().and_then(|version| version.split_once('/')) {
            Some((group, _)) if group != GROUP => Form::Foreign,
            // The core API of Kubernetes.
            None if version.text() == Some("v1") => Form::Foreign,
            _ => Form::Manifest,
        }
    }

    /// Returns whether the document is an object.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.root.value, Value::Map(_))
    }

    /// Returns an error of the document as a whole.
    pub fn error(&self, message: impl Into<String>) -> Finding {
        Finding::error(&self.root.place, message)
    }

    /// Returns whether the document uses an unsupported part of YAML. Such a document is never used. It is still checked, so that
    /// all faults are reported at once.
    pub(crate) fn has_refused_values(&self) -> bool {
        !self.refused.is_empty()
    }
}
