//! The kind `Job`: one conversation with a Skill.

mod binding;
mod child;
mod feature_result;
mod gates;
mod reply;
mod rules;
mod status;
mod usage;

pub use binding::{Binding, ClaimBinding};
pub use child::{ChildJob, ParentJob, RequestedChild};
pub use feature_result::{FeatureResult, JobMode};
pub use gates::{
    DetectedIntent, Finalization, FinalizationAttempt, FinalizationCode, FinalizationReason, GateReason, Gates,
    PreTool, Ruling, SuggestedAction, Verdict,
};
pub use reply::Reply;
pub use status::{
    ApprovedCall, AskedCall, AskedQuestion, Attempt, CallNotStarted, ChildrenUsage, HeldCall, JobResult, JobStatus,
    LlmCalls, LogPosition, ModelUsage, Tokens, TokensByStage, ToolName, Usage, WaitingFor, WorkflowProgress,
};

use super::shared::Limits;
use super::skill::CoreNote;
use crate::names;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One conversation with a Skill: an agent works on a goal, in its own worker pod.
///
/// The plural is `skilljobs` (short: `sj`), so that `kubectl get jobs` still shows the Jobs of batch/v1. The singular is `job`,
/// because kubectl prints `job.bloomery.dev/<name>`, and accepts this name only if it has the singular.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Job",
    singular = "job",
    plural = "skilljobs",
    shortname = "sj",
    shortname = "skilljob",
    namespaced,
    status = "JobStatus",
    derive = "PartialEq",
    doc = "Job is one conversation with a Skill: an agent works on a goal, in its own worker pod.",
    category = "bloomery",
    printcolumn(name = "Skill", type_ = "string", json_path = ".spec.skill"),
    printcolumn(
        name = "Intent",
        type_ = "string",
        json_path = ".status.gates.intent.id",
        priority = "1"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.outcome.code"),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.attempt.number"),
    printcolumn(name = "Steps", type_ = "integer", json_path = ".status.usage.llmCalls.plan"),
    printcolumn(name = "Tools", type_ = "integer", json_path = ".status.usage.toolCalls"),
    printcolumn(
        name = "Denied",
        type_ = "integer",
        json_path = ".status.gates.preTool.denied",
        priority = "1"
    ),
    printcolumn(
        name = "Held",
        type_ = "string",
        json_path = ".status.waitingFor.call.tool",
        priority = "1"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Goal", type_ = "string", json_path = ".spec.goal", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = super::shared::name_rule(),
    validation = rules::continues_another(),
    validation = rules::run_key_is_set_once(),
    validation = rules::terminal_is_final(),
    validation = rules::outcome_is_final(),
    validation = rules::log_grows(),
    validation = rules::attempts_grow()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::skill_is_fixed(),
    validation = rules::goal_is_fixed(),
    validation = rules::optional_is_fixed("resources"),
    validation = rules::optional_is_fixed("continues"),
    validation = rules::optional_is_fixed("memoryScope"),
    validation = rules::parent_is_fixed(),
    validation = rules::cancel_stays(),
    validation = rules::replies_only_grow(),
    validation = rules::optional_is_fixed("mode"),
    validation = rules::validation_has_its_own_run(),
    validation = rules::limits_only_fall("steps", "self.limits.steps <= oldSelf.limits.steps"),
    validation = rules::limits_only_fall("toolCalls", "self.limits.toolCalls <= oldSelf.limits.toolCalls"),
    validation = rules::limits_only_fall("tokens", "self.limits.tokens <= oldSelf.limits.tokens"),
    validation = rules::limits_only_fall("duration", "duration(self.limits.duration) <= duration(oldSelf.limits.duration)")
)]
pub struct JobSpec {
    /// The name of a Skill in the same namespace. Immutable. Default: `sw-dev-agent`. If this Skill does not exist, it is created
    /// from its template. So is another Skill if the Job has the annotation `bloomery.dev/bootstrap: "true"`, and the installation
    /// has a template of that name.
    #[serde(default = "JobSpec::default_skill")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub skill: String,
    /// The key of the run. It names the log in the Skill's memory, and is a part of the key of each tool call. Default: the UID of the Job.
    /// A Job with the key of an earlier run continues that run, or takes over its outcome if it has ended. It can be set once, and only
    /// before the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub run_key: Option<String>,
    /// The goal in natural language. Immutable.
    #[schemars(length(min = 1, max = 8192))]
    #[x_kube(validation = kube::core::Rule::new("self.trim() != ''").message("must not be blank"))]
    pub goal: String,
    /// The task of the Job. `Validate` tests the features of the Skill, each in a conversation of its own with an empty memory, and records
    /// the results in the status of the Job and of the Skill. It excludes `runKey` and `continues`. Immutable. Default: `Run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<JobMode>,
    /// The bindings of the Skill's resources, by name. Immutable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub resources: BTreeMap<String, Binding>,
    /// The limits of the Job. They can only lower those of the Skill. A change can only lower them further. A running worker applies
    /// it with the response to its next report, after the step that it performs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The name of an earlier Job of the same Skill that this Job continues. The conversation begins with the goal and the answer
    /// of the earlier Job. This Job starts when the earlier Job has ended. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub continues: Option<String>,
    /// The core notes of the memory bank that the Job reads at its start. It can only leave out notes of the Skill's `memory.scope`.
    /// Immutable. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub memory_scope: Option<Vec<CoreNote>>,
    /// The Job that invoked this one with `use_skill`. Only the operator sets it, when it creates the Job. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentJob>,
    /// Answers to questions of the agent, and messages to the conversation. Replies can only be added at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Reply::MAX_REPLIES))]
    pub replies: Vec<Reply>,
    /// Cancels the Job if true. It cannot be changed back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<bool>,
    /// The time from the end of the Job to its deletion, in seconds. Default: the Job is not deleted. The log and the record in the
    /// Skill's memory are kept. Do not set it for Jobs in Git: a GitOps controller would create and run a deleted Job again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// A reply of the Job's spec. Directives carry replies too, so a worker ignores fields that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenReply {
    /// The position among the Job's replies, from 1.
    pub nth: u32,
    /// The id of the question that it answers. `None` for a message to the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The text.
    pub text: String,
}

impl Job {
    /// Returns the key of the run: that of the spec, or else the UID.
    pub fn run_key(&self) -> Option<&str> {
        self.spec.run_key.as_deref().or(self.metadata.uid.as_deref())
    }

    /// Returns whether the Job asks for its Skill to be created from a template: it runs the default Skill, or it has the annotation
    /// [`names::ANNOTATION_BOOTSTRAP`].
    pub fn bootstraps_skill(&self) -> bool {
        let annotation = self.metadata.annotations.as_ref().and_then(|all| all.get(names::ANNOTATION_BOOTSTRAP));
        self.spec.skill == JobSpec::DEFAULT_SKILL || annotation.is_some_and(|value| value == "true")
    }
}

impl JobSpec {
    /// The Skill of a Job that names none.
    pub const DEFAULT_SKILL: &str = "sw-dev-agent";

    fn default_skill() -> String {
        Self::DEFAULT_SKILL.to_owned()
    }

    /// Returns whether the Job tests the features of its Skill.
    pub fn validates(&self) -> bool {
        self.mode == Some(JobMode::Validate)
    }

    /// Returns the replies after the first `heard` ones, each with its position.
    pub fn replies_after(&self, heard: u32) -> impl Iterator<Item = GivenReply> {
        (1..).zip(&self.replies).filter(move |(nth, _)| *nth > heard).map(|(nth, reply)| GivenReply {
            nth,
            question: reply.question.clone(),
            text: reply.text.clone(),
        })
    }

    /// Returns the replies that the conversation has not received according to `status`.
    pub fn pending_replies(&self, status: &JobStatus) -> impl Iterator<Item = GivenReply> {
        self.replies_after(status.replies_heard.unwrap_or_default())
    }

    /// Returns whether a pending reply may answer an open question. A message is not an answer.
    pub fn has_pending_answer(&self, status: &JobStatus) -> bool {
        self.pending_replies(status).any(|reply| reply.question.is_some_and(|question| status.may_be_open(&question)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_skill_runs_the_default_skill() {
        let spec: JobSpec = serde_json::from_value(serde_json::json!({ "goal": "Explain the code" })).unwrap();
        assert_eq!(spec.skill, JobSpec::DEFAULT_SKILL);
        let schema = crate::v1alpha1::spec_schema_of("Job").unwrap();
        let skill = &schema.properties.as_ref().unwrap()["skill"];
        assert_eq!(skill.default.as_ref().map(|default| &default.0), Some(&JobSpec::DEFAULT_SKILL.into()));
    }

    #[test]
    fn a_job_of_another_skill_asks_for_it_by_an_annotation() {
        let mut job = Job::new("refund", JobSpec { skill: "cs-tier-1".into(), ..JobSpec::default() });
        assert!(!job.bootstraps_skill());
        for (value, bootstraps) in [("false", false), ("", false), ("true", true)] {
            job.metadata.annotations = Some([(names::ANNOTATION_BOOTSTRAP.to_owned(), value.to_owned())].into());
            assert_eq!(job.bootstraps_skill(), bootstraps, "{value}");
        }
        job.metadata.annotations = None;
        job.spec.skill = JobSpec::DEFAULT_SKILL.to_owned();
        assert!(job.bootstraps_skill());
    }

    #[test]
    fn replies_keep_their_position_in_the_list() {
        let reply = |question: Option<&str>| Reply { question: question.map(str::to_owned), text: "A-17".into() };
        let spec = JobSpec { replies: vec![reply(Some("q-1")), reply(None), reply(Some("q-2"))], ..JobSpec::default() };
        let after = |heard| spec.replies_after(heard).map(|given| (given.nth, given.question)).collect::<Vec<_>>();
        assert_eq!(after(0), [(1, Some("q-1".into())), (2, None), (3, Some("q-2".into()))]);
        assert_eq!(after(2), [(3, Some("q-2".into()))]);
        assert_eq!((after(3), after(u32::MAX)), (vec![], vec![]));
    }
}
