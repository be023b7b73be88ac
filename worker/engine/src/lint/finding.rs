//! A finding of the lint.

use bloomery_crds::fault::Fault;
use bloomery_crds::text::bounded;
use serde::Serialize;
use std::fmt;

/// The longest message, and the longest hint, in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// A finding about a Skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The field, such as `spec.policy.approvals[0].when`.
    pub path: String,
    /// The severity.
    pub severity: Severity,
    /// The problem, as a sentence without full stop.
    pub message: String,
    /// The remedy, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// A part of the Skill cannot work, or has another effect than written.
    Error,
    /// The Skill may not do what its author means.
    Warning,
}

/// Writes the path, the message and the hint.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        Self::error(fault.path, fault.message)
    }
}

impl Finding {
    pub(super) fn error(path: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self {
            path: path.into(),
            severity: Severity::Error,
            message: bounded(message.as_ref(), MAX_TEXT_BYTES),
            hint: None,
        }
    }

    pub(super) fn warning(path: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, message) }
    }

    pub(super) fn hint(self, hint: impl AsRef<str>) -> Self {
        Self { hint: Some(bounded(hint.as_ref(), MAX_TEXT_BYTES)), ..self }
    }

    /// Adds the nearest of the names as a hint, if one is near.
    pub(super) fn nearest<'a>(self, name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        match bloomery_crds::nearest::nearest(name, names) {
            Some(near) => self.hint(format!("did you mean {near:?}?")),
            None => self,
        }
    }
}
