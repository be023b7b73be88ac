//! The input of a conversation from outside: bound resources, gathered context, and directives of the operator.

use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::ResourceType;
use serde::{Deserialize, Serialize};

/// A resource that the Job binds, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// The resource's name in the Skill.
    pub name: String,
    /// The type of the resource.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// The value that prompts may show: a mount path or a URL. None for a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendering: Option<String>,
}

/// A part of the context that was gathered before the conversation opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextPart {
    /// The kind of the part.
    pub kind: ContextKind,
    /// The source of the part: the name of a resource, a note, or a Job.
    #[serde(rename = "of")]
    pub source: String,
    /// The text, which the model reads as data; empty if there is a fault.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The reason why there is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The kind of a context part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "snake_case")]
pub enum ContextKind {
    /// A listing of a file system.
    ProjectStructure,
    /// The files of a file system that changed recently.
    RecentChanges,
    /// A note of the memory bank, or the list of notes.
    MemoryBank,
    /// The goal and the answer of the Job that this Job follows up, and of the Jobs before it.
    Earlier,
}

impl ContextKind {
    /// Returns the tag of the part in the prompt.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A directive of the operator about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Directive {
    /// A person has cancelled the Job. The Job ends.
    Cancel,
    /// The namespace is suspended. The worker parks.
    Park,
    /// The Job's Skill was deleted. The Job ends.
    SkillDeleted,
}

impl Directive {
    /// Returns the outcome code of a Job that receives the directive, or nothing if the Job continues later.
    pub fn outcome_code(self) -> Option<OutcomeCode> {
        match self {
            Self::Cancel => Some(OutcomeCode::Cancelled),
            Self::SkillDeleted => Some(OutcomeCode::SkillDeleted),
            Self::Park => None,
        }
    }
}
