//! The kind `Approval`: a held call that a person decides on.

use super::job::GateReason;
use super::shared::conditions_schema;
use crate::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call of a tool that waits until a person has decided.
///
/// The operator makes it, one for each approver who has to agree, and a person decides by setting `decision`: who may
/// `approve` the `approvers` of that name, in their own name, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Approval",
    shortname = "apr",
    namespaced,
    status = "ApprovalStatus",
    derive = "PartialEq",
    doc = "Approval is a call of a tool that waits until a person has decided. The operator makes it; whoever may approve for its approver decides, by setting spec.decision once.",
    category = "bloomery",
    printcolumn(name = "Job", type_ = "string", json_path = ".spec.job"),
    printcolumn(name = "Tool", type_ = "string", json_path = ".spec.tool"),
    printcolumn(name = "Approver", type_ = "string", json_path = ".spec.approver"),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt"),
    printcolumn(name = "Decision", type_ = "string", json_path = ".spec.decision.verdict"),
    printcolumn(name = "By", type_ = "string", json_path = ".spec.decision.by"),
    printcolumn(name = "Counted", type_ = "string", json_path = ".status.counted.verdict"),
    printcolumn(name = "Arguments", type_ = "string", json_path = ".spec.arguments", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = super::shared::name_rule(),
    validation = counted_stays()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = is_fixed(),
    validation = arguments_are_fixed(),
    validation = told_is_fixed(),
    validation = decision_stays()
)]
pub struct ApprovalSpec {
    /// The Job that the call belongs to.
    #[schemars(length(min = 1, max = 50))]
    pub job: String,
    /// Its UID: a Job that is made anew under the name is another.
    #[schemars(length(min = 1, max = 64))]
    pub job_uid: String,
    /// Who has to agree: who may `approve` the `approvers` of this name in the group `bloomery.dev`.
    #[schemars(length(min = 1, max = 64))]
    pub approver: String,
    /// The tool.
    #[schemars(length(min = 1, max = 128))]
    pub tool: String,
    /// The id of the call in the Job's log.
    #[schemars(length(min = 1, max = 64))]
    pub call_id: String,
    /// The exact arguments of the call, as canonical JSON: what is sent where all agree.
    #[schemars(length(min = 2, max = ApprovalSpec::MAX_ARGUMENTS))]
    pub arguments: String,
    /// Their digest.
    pub arguments_digest: Digest,
    /// Every rule that holds the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_RULES))]
    pub rules: Vec<HoldRule>,
    /// What the Job is to reach, cut at 1024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_GOAL))]
    pub goal: String,
    /// The last events of the conversation before the call was held, a line each, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_EVENTS), inner(length(max = ApprovalSpec::MAX_EVENT)))]
    pub events: Vec<String>,
    /// When it is too late to decide. A decision counts that the operator has seen before.
    pub expires_at: Time,
    /// Which admission policy and binding checked decisions when it was made. Under others it is asked anew: nobody knows
    /// what checked a decision meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Digest>,
    /// The decision: the one field that is set later, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
}

impl ApprovalSpec {
    /// The largest arguments that people are asked to approve, in bytes; larger ones are denied before.
    pub const MAX_ARGUMENTS: usize = 16 * 1024;

    /// How many rules it shows.
    pub const MAX_RULES: usize = 16;

    /// The longest text of a rule, in bytes.
    pub const MAX_RULE: usize = 512;

    /// How much of the goal it shows, in bytes.
    pub const MAX_GOAL: usize = 1024;

    /// How many events it shows.
    pub const MAX_EVENTS: usize = 8;

    /// The longest line of an event, in bytes.
    pub const MAX_EVENT: usize = 512;
}

/// A rule that holds a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldRule {
    /// The layer of the pre-tool gate that it belongs to.
    pub layer: GateReason,
    /// What it says.
    #[schemars(length(max = ApprovalSpec::MAX_RULE))]
    pub text: String,
    /// Who has to agree because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub approver: Option<String>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecision {
    /// `Approve` lets the call be made, `Deny` does not. `Expired` is the operator's, where nobody decided in time.
    pub verdict: ApprovalVerdict,
    /// Who decides: the user name of whoever writes this, as `kubectl auth whoami` shows it.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,
    /// Why, in their own words. The model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

/// What may be decided of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ApprovalVerdict {
    /// The call may be made.
    Approve,
    /// The call is not made.
    Deny,
    /// Nobody decided in time: the call is not made.
    Expired,
}

/// What the operator says of an Approval: nothing as long as it is open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What counts, and since when: written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedDecision>,
    /// `Ready` once a decision counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// The decision as it counts: one that came too late counts as `Expired`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedDecision {
    /// What counts.
    pub verdict: ApprovalVerdict,
    /// When the operator saw it.
    pub at: Time,
}

/// What a person decides on does not change while they do: who is asked about which call.
fn is_fixed() -> Rule {
    Rule::new(
        "self.job == oldSelf.job && self.jobUid == oldSelf.jobUid && self.approver == oldSelf.approver \
         && self.tool == oldSelf.tool && self.callId == oldSelf.callId && self.expiresAt == oldSelf.expiresAt",
    )
    .message("is fixed: only decision may be set")
}

/// The same for what would be sent.
fn arguments_are_fixed() -> Rule {
    Rule::new("self.arguments == oldSelf.arguments && self.argumentsDigest == oldSelf.argumentsDigest")
        .message("the arguments are fixed: only decision may be set")
}

/// The same for what they are told of it.
fn told_is_fixed() -> Rule {
    Rule::new(
        "has(self.rules) == has(oldSelf.rules) && (!has(self.rules) || self.rules == oldSelf.rules) \
         && has(self.events) == has(oldSelf.events) && (!has(self.events) || self.events == oldSelf.events) \
         && has(self.goal) == has(oldSelf.goal) && (!has(self.goal) || self.goal == oldSelf.goal) \
         && has(self.guard) == has(oldSelf.guard) && (!has(self.guard) || self.guard == oldSelf.guard)",
    )
    .message("what is told of the call is fixed: only decision may be set")
}

/// A decision is made once.
fn decision_stays() -> Rule {
    Rule::new("!has(oldSelf.decision) || (has(self.decision) && self.decision == oldSelf.decision)")
        .message("a decision is never changed or taken back")
        .field_path(".decision")
}

/// What has counted goes on to count, whoever writes.
fn counted_stays() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.counted) \
         || (has(self.status) && has(self.status.counted) && self.status.counted == oldSelf.status.counted)",
    )
    .message("what has counted is never changed")
}
