//! What was found in a document, and where.

use crate::tree::{Path, Place};
use serde::Serialize;
use std::fmt;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// It can be used, but probably does not say what was meant.
    Warning,
    /// It cannot be used.
    Error,
}

/// How every finding of an unknown field begins.
pub(crate) const NO_SUCH_FIELD: &str = "there is no such field";

/// Something that a person should know of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How much it weighs.
    pub severity: Severity,
    /// The field, as the document writes it; empty for a document as a whole.
    pub path: String,
    /// What is wrong, for people.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// A finding of the value at `place`.
    pub(crate) fn at(place: &Place, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            line: place.line,
            column: place.column,
            severity,
            path: place.to_string(),
            message: message.into(),
            hint: None,
        }
    }

    /// An error at `place`.
    pub(crate) fn error(place: &Place, message: impl Into<String>) -> Self {
        Self::at(place, Severity::Error, message)
    }

    /// A warning at `place`.
    pub(crate) fn warning(place: &Place, message: impl Into<String>) -> Self {
        Self::at(place, Severity::Warning, message)
    }

    /// An error of a file as a whole.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self::error(&Place { line: 1, column: 1, path: Path::default() }, message)
    }

    /// Whether it is a field that nobody knows: then another field may seem to be missing that was only misspelt.
    pub fn is_unknown_field(&self) -> bool {
        self.message.starts_with(NO_SUCH_FIELD)
    }

    /// Says what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Finding {
    /// `line:column: severity: path: message`, without the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: ", self.line, self.column, self.severity)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Whether one of the findings is an error.
pub(crate) fn any_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Brings findings into the order in which a person reads the file.
pub(crate) fn in_order(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| (finding.line, finding.column));
}
