//! Findings: what is wrong with a document, and where.

use crate::tree::{Entry, Node, Path, Place, locate};
use bloomery_crds::nearest::nearest;
use bloomery_crds::text::bounded;
use serde::Serialize;
use std::fmt;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// The document can be used, but probably does not say what was meant.
    Warning,
    /// The document cannot be used.
    Error,
}

/// The beginning of every finding of an unknown field.
const NO_SUCH_FIELD: &str = "there is no such field";

/// A fault or a doubt about a document, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The weight.
    pub severity: Severity,
    /// The path of the field, as the document writes it; empty for a document as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

    /// An error for a field that the schema does not have, with the nearest of those that it has.
    pub(crate) fn unknown_field<'a>(entry: &Entry, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let near = did_you_mean(&entry.name, known.iter().copied());
        let finding = Self::error(&entry.place, format!("{NO_SUCH_FIELD}{near}"));
        match known.as_slice() {
            _ if entry.name == "<<" => {
                finding.hint("merges (<<) are not read: write the fields out where they are meant")
            }
            [] => finding,
            [_, ..] => finding.hint(format!("known here: {}", known.join(", "))),
        }
    }

    /// A finding of the field at a path of the API, with the place that the field has in `root`.
    pub fn located(root: &Node, path: &str, severity: Severity, message: String) -> Self {
        let (line, column, path) = locate(root, path);
        Self { line, column, severity, path, message, hint: None }
    }

    /// Returns the line and the column, by which findings are sorted.
    pub fn position(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Whether the finding is an unknown field. A field that seems to be missing then may only have been misspelt.
    pub fn is_unknown_field(&self) -> bool {
        self.message.starts_with(NO_SUCH_FIELD)
    }

    /// Adds what to do about the finding.
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

/// Quotes a part of a document.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", bounded(text, 64))
}

/// Returns ` (did you mean "x"?)` where a candidate is near, else nothing.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
}
