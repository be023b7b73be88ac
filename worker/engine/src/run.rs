//! The inputs of a conversation: the run document without its transport.

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::BoundResource;
use bloomery_crds::v1alpha1::SkillSpec;

/// The inputs of a conversation, fixed for an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The key of the run: it names the log, and is part of the key of each tool call.
    pub run_key: String,
    /// The Skill's name.
    pub skill_name: String,
    /// The Skill.
    pub skill: SkillSpec,
    /// The digest of the Skill's revision.
    pub revision: Digest,
    /// The goal.
    pub goal: String,
    /// The limits.
    pub limits: EffectiveLimits,
    /// The bound resources, in the order of the Skill.
    pub resources: Vec<BoundResource>,
    /// The context window of the main loop's model, in tokens.
    pub context_window: u64,
    /// The name of the Job that this one follows up.
    pub continues: Option<String>,
    /// Whether people answer questions. If not, a question that only they can answer ends the conversation.
    pub people: bool,
    /// Whether the memory bank of the skill directory holds notes when the worker starts.
    pub has_notes: bool,
    /// The most tokens of an answer of any of its models.
    pub max_output: u64,
}
