//! What was gathered before a conversation opened.

use serde::{Deserialize, Serialize};

/// A part of what was gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextPart {
    /// What it is.
    pub kind: ContextKind,
    /// Of what: the name of a resource, or of a note.
    pub of: String,
    /// The text for the model, which is data; empty where there is a fault.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why there is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What a part of what was gathered is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "snake_case")]
pub enum ContextKind {
    /// What there is in a file system.
    ProjectStructure,
    /// What has changed in it lately.
    RecentChanges,
    /// A note of the memory bank, or the list of them.
    MemoryBank,
    /// What was asked and answered in the Job that this one follows up, and in those before it.
    Earlier,
}

impl ContextKind {
    /// What the prompt calls it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
