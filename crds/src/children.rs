//! Child Jobs: the requests of workers for them, and their states (`docs/explanation/engine.md`, section 6).
//!
//! A Job invokes another Skill with the core tool `use_skill`. Its worker puts a [`ChildRequest`] into each report until it knows how the
//! child ended. The operator creates the child, and answers with a [`ChildState`].

use crate::canonical::Digest;
use crate::outcome::{Outcome, OutcomeCode, code_or_user_needed};
use crate::text::bounded;
use crate::v1alpha1::{ChildJob, JobResult, Limits, RequestedChild, SkillSpec, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The path of the Skills that a Job may invoke, at the server of the report endpoint. The query `?after=NAME` asks for the page after a
/// name.
pub const SKILLS_PATH: &str = "/v1/skills";

/// The largest number of Skills in a page.
pub const MAX_PAGE: usize = 64;

/// The longest description of a Skill, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 512;

/// The largest number of open children of a Job.
pub const MAX_OPEN_CHILDREN: usize = 4;

/// The largest number of children of a Job.
pub const MAX_CHILDREN: usize = ChildJob::MAX_CHILDREN;

/// The largest depth of a Job. A Job without a parent has the depth 1.
pub const MAX_DEPTH: u32 = 4;

/// The longest goal of a child, in bytes.
pub const MAX_GOAL_BYTES: usize = RequestedChild::MAX_GOAL_BYTES;

/// The longest time that the operator holds a report open, in seconds.
pub const WAIT_SECONDS: u32 = 20;

/// The default time that a worker waits for a child before it parks, in seconds.
pub const DEFAULT_CHILD_WAIT_SECONDS: u32 = 30;

/// The longest time that a worker waits for all children of an attempt together, in seconds. The deadline of its pod has room for it.
pub const MAX_CHILD_WAIT_SECONDS: u32 = 180;

/// The entry of `spec.skills` that stands for every Skill.
pub const EVERY_SKILL: &str = "*";

/// Returns whether `spec.skills` allows a Skill.
pub fn may_invoke(skills: &[String], name: &str) -> bool {
    skills.iter().any(|entry| entry == EVERY_SKILL || entry == name)
}

/// A Skill that a Job may invoke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisibleSkill {
    /// The name.
    pub name: String,
    /// The display name and the goal or the problem, at most [`MAX_DESCRIPTION_BYTES`].
    pub description: String,
    /// The names of the required resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}

impl VisibleSkill {
    /// Returns a Skill as the model sees it.
    pub fn new(name: &str, spec: &SkillSpec) -> Self {
        let about = spec.goal.as_deref().unwrap_or(&spec.problem.statement);
        let description = match &spec.display_name {
            Some(title) => format!("{title}: {about}"),
            None => about.to_owned(),
        };
        let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let required = spec.resources.iter().filter(|resource| resource.required == Some(true));
        Self {
            name: name.to_owned(),
            description: bounded(&line, MAX_DESCRIPTION_BYTES),
            resources: required.map(|resource| resource.name.clone()).collect(),
        }
    }
}

/// A page of the Skills that a Job may invoke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillPage {
    /// The Skills, sorted by name; at most [`MAX_PAGE`].
    pub skills: Vec<VisibleSkill>,
    /// The last name, if there are more Skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A request for a child Job. It is created at most once, however often the request is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildRequest {
    /// The id of the call in the log of the parent.
    pub call: String,
    /// The digest of the arguments of the call.
    pub digest: Digest,
    /// The name of the Skill.
    pub skill: String,
    /// The goal of the child, at most [`MAX_GOAL_BYTES`].
    pub goal: String,
    /// The names of the parent's bindings that the child gets under the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The limits of the child, which are reserved from the parent's remaining budget.
    pub limits: Limits,
}

/// The state of a child Job, as the operator knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildState {
    /// The id of the call in the log of the parent.
    pub call: String,
    /// The name of the child.
    pub job: String,
    /// The state.
    pub state: ChildProgress,
}

/// How far a child Job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChildProgress {
    /// The child exists, and has not ended.
    Running,
    /// The child has ended.
    Ended {
        /// The code of the outcome. A code that this version does not know counts as `UserNeeded`.
        #[serde(deserialize_with = "code_or_user_needed")]
        code: OutcomeCode,
        /// The message of the outcome.
        message: String,
        /// The text of the answer, shortened as `status.result.text` is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The fields of the answer. Omitted if they are larger than those of `status.result`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        fields: Map<String, Value>,
        /// The budgets that the child and its own children consumed.
        usage: Usage,
    },
    /// The operator did not create the child.
    Refused {
        /// The reason, as a sentence: the Skill is not allowed or not ready, the child would be too deep or in a cycle, or there are too
        /// many children.
        reason: String,
    },
    /// The child was deleted before it ended.
    Deleted,
}

impl ChildProgress {
    /// Returns the end of a child with this outcome. An empty text counts as none.
    pub fn ended(outcome: Outcome, result: Option<JobResult>, usage: Usage) -> Self {
        let JobResult { text, fields, .. } = result.unwrap_or_default();
        let text = Some(text).filter(|text| !text.is_empty());
        Self::Ended { code: outcome.code, message: outcome.message, text, fields, usage }
    }
}

/// The number of characters of the parent's name in the name of a child.
const PARENT_CHARS: usize = 32;

/// Returns the name of a child. `skill` is the Skill of the parent, `run_key` the run key of the parent, and `call` the id of the call.
pub fn name(parent: &str, skill: &str, run_key: &str, call: &str) -> String {
    let start = parent.get(..PARENT_CHARS).unwrap_or(parent);
    format!("{start}-{}", key(skill, run_key, call).short(8))
}

/// Returns the run key of a child. The parameters are those of [`name`].
pub fn run_key(skill: &str, run_key: &str, call: &str) -> String {
    key(skill, run_key, call).short(32).to_owned()
}

/// Returns the digest that identifies a child. Parents of different Skills may have the same run key.
fn key(skill: &str, run_key: &str, call: &str) -> Digest {
    Digest::of_value(&json!([skill, run_key, call]))
}

/// Returns whether a Job of a depth is one without a parent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_root(depth: &u32) -> bool {
    *depth <= root_depth()
}

/// Returns the depth of a Job without a parent.
pub(crate) fn root_depth() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::is_name;

    #[test]
    fn the_name_and_the_run_key_of_a_child_depend_on_its_parent_and_its_call_only() {
        let child = name("refund", "cs-tier-1", "k-1", "c-1");
        assert_eq!(child, name("refund", "cs-tier-1", "k-1", "c-1"));
        assert!(child.starts_with("refund-") && child.len() == "refund-".len() + 8, "{child}");
        let others = [
            name("refund", "cs-tier-1", "k-1", "c-2"),
            name("refund", "cs-tier-1", "k-2", "c-1"),
            name("refund", "cs-tier-2", "k-1", "c-1"),
            name("refunds", "cs-tier-1", "k-1", "c-1"),
        ];
        assert!(!others.contains(&child), "{others:?}");
        let key = run_key("cs-tier-1", "k-1", "c-1");
        assert_eq!((key.len(), key.starts_with(&child["refund-".len()..])), (32, true));
        // The parts are not only joined.
        assert_ne!(run_key("a", "b-c", "d"), run_key("a", "b", "c-d"));
    }

    #[test]
    fn a_skill_is_described_by_its_goal_in_one_bounded_line() {
        let spec = |about: Value| -> SkillSpec {
            let mut spec = json!({
                "problem": { "statement": "Bills\nand more" },
                "resources": [{ "name": "shop", "type": "api_endpoint", "required": true }, { "name": "a", "type": "filesystem" }],
            });
            spec.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
            serde_json::from_value(spec).unwrap()
        };
        let skill = VisibleSkill::new("billing", &spec(json!({})));
        assert_eq!((skill.description.as_str(), skill.resources), ("Bills and more", vec!["shop".to_owned()]));
        let titled = spec(json!({ "displayName": "Billing", "goal": "x".repeat(2000) }));
        let description = VisibleSkill::new("billing", &titled).description;
        assert!(description.starts_with("Billing: xxx") && description.len() <= MAX_DESCRIPTION_BYTES);
    }

    #[test]
    fn the_name_of_a_child_of_the_longest_parent_is_a_name() {
        for parent in ["a".repeat(50), "a".repeat(31) + "-" + &"b".repeat(18), "a".to_owned()] {
            assert!(is_name(&name(&parent, "s", "k", "c")), "{parent}");
        }
    }

    #[test]
    fn a_state_of_another_version_is_read_cautiously() {
        let ended = json!({
            "call": "c-1", "job": "refund-1", "since": 3,
            "state": { "ended": {
                "phase": "Archived", "code": "BudgetSpent", "message": "m", "mood": "good",
                "usage": { "llmCalls": { "plan": 1 }, "inputTokens": 1, "outputTokens": 1, "toolCalls": 1, "cost": 1 },
            } },
        });
        let state: ChildState = serde_json::from_value(ended).unwrap();
        let ChildProgress::Ended { code, text, .. } = state.state else { panic!("{:?}", state.state) };
        assert_eq!((code, text), (OutcomeCode::UserNeeded, None));
        let unknown = json!({ "call": "c-1", "job": "refund-1", "state": "archived" });
        assert!(serde_json::from_value::<ChildState>(unknown).is_err());
    }

    #[test]
    fn the_end_of_a_child_without_text_has_none() {
        let outcome = Outcome::new(OutcomeCode::Succeeded, "it passed");
        let text = |result: Option<JobResult>| {
            let ended = ChildProgress::ended(outcome.clone(), result, Usage::default());
            let ChildProgress::Ended { code, message, text, .. } = ended else { panic!("{ended:?}") };
            assert_eq!((code, message), (outcome.code, outcome.message.clone()));
            text
        };
        let result = |text: &str| Some(JobResult { text: text.into(), ..JobResult::default() });
        assert_eq!((text(None), text(result("")), text(result("Done."))), (None, None, Some("Done.".into())));
    }

    #[test]
    fn states_and_requests_are_written_in_camel_case() {
        let state = |state| ChildState { call: "c-1".into(), job: "refund-1".into(), state };
        assert_eq!(
            serde_json::to_value(state(ChildProgress::Running)).unwrap(),
            json!({ "call": "c-1", "job": "refund-1", "state": "running" })
        );
        let refused = state(ChildProgress::Refused { reason: "no".into() });
        assert_eq!(serde_json::to_value(refused).unwrap()["state"], json!({ "refused": { "reason": "no" } }));
        let request = ChildRequest {
            call: "c-1".into(),
            digest: Digest::of_bytes(b""),
            skill: "billing".into(),
            goal: "Refund".into(),
            resources: Vec::new(),
            limits: Limits { tool_calls: Some(3), ..Limits::default() },
        };
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(written["limits"], json!({ "toolCalls": 3 }));
        assert_eq!(serde_json::from_value::<ChildRequest>(written).unwrap(), request);
    }
}
