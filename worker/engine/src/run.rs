//! The inputs of a conversation.
//!
//! The path of the goal: the operator copies `Job.spec.goal` to [`JobPart::goal`], the input of one attempt. The worker
//! redacts it into [`Run::goal`]. The opening records it in [`Event::ConversationOpened`], which makes it the first turn of
//! the user. The prompts of the other stages contain it as data.
//!
//! [`JobPart::goal`]: bloomery_crds::run::JobPart::goal
//! [`Event::ConversationOpened`]: crate::Event::ConversationOpened

use crate::decisions::Decisions;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::BoundResource;
use bloomery_crds::tool_pins::ToolPins;
use bloomery_crds::v1alpha1::{SkillSpec, ToolPolicy};

/// The inputs of a conversation. During an attempt, they only become stricter: limits are lowered, and tools are blocked.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The key of the run: it names the log, and is part of the key of each tool call.
    pub run_key: String,
    /// The UID of the Job, if the Job names its run key. Then the log may be that of an earlier Job with the same key.
    pub job: Option<String>,
    /// The Skill's name.
    pub skill_name: String,
    /// The spec of the Skill.
    pub skill: SkillSpec,
    /// The digest of the Skill's revision.
    pub revision: Digest,
    /// The goal of the Job, without the values of secrets.
    pub goal: String,
    /// The limits.
    pub limits: EffectiveLimits,
    /// The bound resources, in the order of the Skill.
    pub resources: Vec<BoundResource>,
    /// The context window of the main loop's model, in tokens.
    pub context_window: u64,
    /// The name of the Job that this one follows up.
    pub continues: Option<String>,
    /// Whether people can be asked. If not, a question to them ends the conversation.
    pub people: bool,
    /// The pins of the tools of the MCP server. `None` if no tools are pinned.
    pub pins: Option<ToolPins>,
    /// The tool policies of the tenant: that of the attempt's start, and stricter ones since. A tool must pass all of them.
    pub tenant_tools: Vec<ToolPolicy>,
    /// The tools with an effect that the test of a feature may call: names, or prefixes of names with `*`. `None` if the conversation is
    /// no test.
    pub allowed_effects: Option<Vec<String>>,
    /// The source of the decisions on held calls that count.
    pub decisions: Decisions,
    /// The depth among parents and children. A Job without a parent has the depth 1. The goal of another one is written by a model, and not by
    /// a person.
    pub depth: u32,
    /// Whether the Job can have children.
    pub can_have_children: bool,
    /// Whether the memory bank of the skill directory holds notes when the worker starts.
    pub has_notes: bool,
    /// The maximum number of tokens in one answer, for all models of the Job.
    pub max_output: u64,
}

impl Run {
    /// Returns whether `policy.tools.blocked` has this entry.
    pub(crate) fn is_blocked(&self, entry: &str) -> bool {
        let tools = self.skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
        tools.is_some_and(|tools| tools.blocked.iter().any(|blocked| blocked == entry))
    }

    /// Adds entries to `policy.tools.blocked`. No entry is removed.
    pub(crate) fn block_tools(&mut self, entries: &[String]) {
        for entry in entries {
            if !self.is_blocked(entry) {
                let policy = self.skill.policy.get_or_insert_default();
                policy.tools.get_or_insert_default().blocked.push(entry.clone());
            }
        }
    }

    /// Adds a tool policy of the tenant. No policy is removed.
    pub(crate) fn restrict_tools(&mut self, policy: &ToolPolicy) {
        if !self.tenant_tools.contains(policy) {
            self.tenant_tools.push(policy.clone());
        }
    }
}
