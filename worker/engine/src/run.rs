//! What a conversation is told before it starts: the run document without its transport.

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::BoundResource;
use bloomery_crds::v1alpha1::SkillSpec;

/// The inputs of a conversation, fixed for an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Names the log and keys tool calls.
    pub run_key: String,
    /// The Skill's name.
    pub skill_name: String,
    /// The Skill.
    pub skill: SkillSpec,
    /// Digest of the Skill's revision.
    pub revision: Digest,
    /// What is to be reached.
    pub goal: String,
    /// The budgets.
    pub limits: EffectiveLimits,
    /// What the Skill's resources are, in the order of the Skill.
    pub resources: Vec<BoundResource>,
    /// How many tokens the model of the main loop takes in all.
    pub context_window: u64,
    /// The name of the Job that this one follows up.
    pub continues: Option<String>,
    /// Whether there are people who answer questions. Where there are none, what only they know ends the conversation.
    pub people: bool,
    /// Whether the slag's memory bank holds notes, as the worker has found it.
    pub has_notes: bool,
    /// How many tokens an answer of any of its models may have.
    pub max_output: u64,
}
