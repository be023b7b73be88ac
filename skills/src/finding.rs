//! Findings: errors and warnings about a document, with their places in it.

use crate::tree::{Entry, Node, Path, Place, locate};
use bloomery_crds::nearest::{nearest, suggestion};
use bloomery_crds::text::bounded;
use serde::Serialize;
use std::fmt;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// The document can be used, but is probably not what the author meant.
    Warning,
    /// The document cannot be used.
    Error,
}

/// The kinds of findings that other checks depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FindingKind {
    /// The schema has no such field. The field may be the misspelling of one that seems to be missing.
    UnknownField,
    /// A required field is missing or empty.
    MissingField,
    /// Every other finding.
    #[default]
    Other,
}

/// An error or a warning about a part of a document, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The severity.
    pub severity: Severity,
    /// The kind and the name of the object, such as `Skill/cs-tier-1`, if several objects are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The document path of the field. Empty for the document as a whole.
    pub path: String,
    /// A description of the fault, as the rest of a sentence that begins with the path.
    pub message: String,
    /// A remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The kind of the finding, for other checks.
    #[serde(skip)]
    pub kind: FindingKind,
}

impl Finding {
    /// Returns a finding about the value at `place`.
    pub(crate) fn at(place: &Place, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            line: place.line,
            column: place.column,
            severity,
            object: None,
            path: place.to_string(),
            message: message.into(),
            hint: None,
            kind: FindingKind::Other,
        }
    }

    /// Returns an error at `place`.
    pub(crate) fn error(place: &Place, message: impl Into<String>) -> Self {
        Self::at(place, Severity::Error, message)
    }

    /// Returns a warning at `place`.
    pub(crate) fn warning(place: &Place, message: impl Into<String>) -> Self {
        Self::at(place, Severity::Warning, message)
    }

    /// Returns an error about a file as a whole.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self::error(&Place::start(), message)
    }

    /// Returns a warning about a file as a whole.
    pub fn warning_of_file(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::of_file(message) }
    }

    /// Returns an error about a text that is not UTF-8 from the byte at `at` on.
    pub(crate) fn not_utf8(bytes: &[u8], at: usize) -> Self {
        let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        let place = Place { line, column, path: Path::default() };
        let byte = bytes.get(at).copied().unwrap_or_default();
        Self::error(&place, format!("the byte 0x{byte:02X} is not UTF-8")).hint("save the file as UTF-8")
    }

    /// Returns an error about a field that is not in the schema, with the most similar field of the schema.
    pub(crate) fn unknown_field<'a>(entry: &Entry, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let near = did_you_mean(&entry.name, known.iter().copied());
        let message = format!("there is no such field{near}");
        let finding = Self { kind: FindingKind::UnknownField, ..Self::error(&entry.place, message) };
        match known.as_slice() {
            _ if entry.name == "<<" => finding.hint("merges (<<) are not supported: write the fields out"),
            [] => finding,
            [_, ..] => finding.hint(format!("known here: {}", known.join(", "))),
        }
    }

    /// Returns an error about a required field that is not in the document. `place` is the place where it belongs.
    pub(crate) fn missing_field(place: &Place) -> Self {
        Self { kind: FindingKind::MissingField, ..Self::error(place, "is required, and is missing") }
    }

    /// Returns an error about a required field without content.
    pub(crate) fn empty_field(place: &Place) -> Self {
        Self { kind: FindingKind::MissingField, ..Self::error(place, "is required, and is empty") }
    }

    /// Returns a finding about the field at an API path. The finding has the place and the document path of that field, which
    /// are looked up in `root`.
    pub fn at_api_path(root: &Node, path: &str, severity: Severity, message: String) -> Self {
        let (line, column, path) = locate(root, path);
        Self { line, column, severity, object: None, path, message, hint: None, kind: FindingKind::Other }
    }

    /// Returns the line and the column, by which findings are sorted.
    pub fn position(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Returns whether the finding is about an unknown field. Such a field may be the misspelling of one that seems to be missing.
    pub fn is_unknown_field(&self) -> bool {
        self.kind == FindingKind::UnknownField
    }

    /// Adds a remedy.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Finding {
    /// Writes `line:column: severity: path: message`, without the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: ", self.line, self.column, self.severity)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Returns a text of the document in quotes, cut to 64 bytes.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", bounded(text, 64))
}

/// Returns ` (did you mean "x"?)` if a candidate is similar, else an empty text.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    suggestion(nearest(name, candidates))
}
