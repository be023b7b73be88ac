//! The kind `Approval`: the decision about a held call.

use super::job::GateReason;
use super::shared::conditions_schema;
use crate::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool call that waits for the decision of a person.
///
/// The operator creates one Approval for each approver of a call. A user decides by setting `decision`, once. The user needs
/// the RBAC verb `approve` on `approvers/<approver>` in the API group `bloomery.dev`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Approval",
    shortname = "apr",
    namespaced,
    status = "ApprovalStatus",
    derive = "PartialEq",
    doc = "Approval is a tool call that waits for the decision of a person. The operator creates it. A user who has the verb approve on its approver sets spec.decision, once.",
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
    validation = counted_stays(),
    validation = counted_is_decided()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = identity_is_fixed(),
    validation = arguments_are_fixed(),
    validation = context_is_fixed(),
    validation = decision_stays()
)]
pub struct ApprovalSpec {
    /// The name of the Job of the call.
    #[schemars(length(min = 1, max = 50))]
    pub job: String,
    /// The UID of the Job. A new Job with the same name has another UID.
    #[schemars(length(min = 1, max = 64))]
    pub job_uid: String,
    /// The approver. A user needs the RBAC verb `approve` on `approvers` of this name in the API group `bloomery.dev`.
    #[schemars(length(min = 1, max = 64))]
    pub approver: String,
    /// The tool.
    #[schemars(length(min = 1, max = 128))]
    pub tool: String,
    /// The id of the call in the Job's log.
    #[schemars(length(min = 1, max = 64))]
    pub call_id: String,
    /// The exact arguments of the call, as canonical JSON.
    #[schemars(length(min = 2, max = ApprovalSpec::MAX_ARGUMENTS_BYTES))]
    pub arguments: String,
    /// The digest of the arguments.
    pub arguments_digest: Digest,
    /// The rules that hold the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_RULES))]
    pub rules: Vec<HoldRule>,
    /// The goal of the Job, cut at 1024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_GOAL_BYTES))]
    pub goal: String,
    /// The last events of the conversation before the call, one line each, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ApprovalSpec::MAX_EVENTS), inner(length(max = ApprovalSpec::MAX_EVENT_BYTES)))]
    pub events: Vec<String>,
    /// The time when the Approval expires. A decision counts if the operator sees it before this time.
    pub expires_at: Time,
    /// The digest of the meaning of the admission policy and its binding when the Approval was created. If the meaning changes, or
    /// either is created again, the operator creates a new Approval, because a decision may have been made without the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Digest>,
    /// The decision. It is the only field that users set, and is immutable once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
}

impl ApprovalSpec {
    /// The largest arguments, in bytes. Calls with larger arguments are denied.
    pub const MAX_ARGUMENTS_BYTES: usize = 16 * 1024;

    /// The largest number of rules.
    pub const MAX_RULES: usize = 16;

    /// The longest text of a rule, in bytes.
    pub const MAX_RULE_BYTES: usize = 512;

    /// The longest goal, in bytes. A longer goal is cut.
    pub const MAX_GOAL_BYTES: usize = 1024;

    /// The largest number of events.
    pub const MAX_EVENTS: usize = 8;

    /// The longest line of an event, in bytes.
    pub const MAX_EVENT_BYTES: usize = 512;
}

/// A rule that holds a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldRule {
    /// The layer of the pre-tool gate.
    pub layer: GateReason,
    /// The text of the rule.
    #[schemars(length(max = ApprovalSpec::MAX_RULE_BYTES))]
    pub text: String,
    /// The approver that the rule names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub approver: Option<String>,
}

/// The decision of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecision {
    /// `Approve` allows the call, and `Deny` denies it. The operator sets `Expired` if nobody decided in time.
    pub verdict: ApprovalVerdict,
    /// The user who decides, as `kubectl auth whoami` shows it. It must be the user who makes this change.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,
    /// The reason, which the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

/// The verdicts about a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ApprovalVerdict {
    /// The call is allowed.
    Approve,
    /// The call is denied.
    Deny,
    /// Nobody decided in time, so the call is denied.
    Expired,
}

/// The observed state of an Approval. Empty until it is decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The decision that counts. Immutable once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedDecision>,
    /// The condition `Ready`, true once a decision counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// The decision that counts. A decision that came too late counts as `Expired`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedDecision {
    /// The verdict.
    pub verdict: ApprovalVerdict,
    /// The time when the operator saw the decision.
    pub at: Time,
}

/// The identity of the call and of the approver is immutable.
fn identity_is_fixed() -> Rule {
    Rule::new(
        "self.job == oldSelf.job && self.jobUid == oldSelf.jobUid && self.approver == oldSelf.approver \
         && self.tool == oldSelf.tool && self.callId == oldSelf.callId && self.expiresAt == oldSelf.expiresAt",
    )
    .message("is immutable: only decision can be set")
}

/// The arguments are immutable.
fn arguments_are_fixed() -> Rule {
    Rule::new("self.arguments == oldSelf.arguments && self.argumentsDigest == oldSelf.argumentsDigest")
        .message("the arguments are immutable: only decision can be set")
}

/// The context of the call is immutable.
fn context_is_fixed() -> Rule {
    Rule::new(
        "has(self.rules) == has(oldSelf.rules) && (!has(self.rules) || self.rules == oldSelf.rules) \
         && has(self.events) == has(oldSelf.events) && (!has(self.events) || self.events == oldSelf.events) \
         && has(self.goal) == has(oldSelf.goal) && (!has(self.goal) || self.goal == oldSelf.goal) \
         && has(self.guard) == has(oldSelf.guard) && (!has(self.guard) || self.guard == oldSelf.guard)",
    )
    .message("the context of the call is immutable: only decision can be set")
}

/// A decision is immutable.
fn decision_stays() -> Rule {
    Rule::new("!has(oldSelf.decision) || (has(self.decision) && self.decision == oldSelf.decision)")
        .message("a decision is never changed or taken back")
        .field_path(".decision")
}

/// The counted decision is immutable.
fn counted_stays() -> Rule {
    Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.counted) \
         || (has(self.status) && has(self.status.counted) && self.status.counted == oldSelf.status.counted)",
    )
    .message("a counted decision is never changed")
}

/// The counted decision is the decision, or `Expired`.
fn counted_is_decided() -> Rule {
    Rule::new(
        "!has(self.status) || !has(self.status.counted) || self.status.counted.verdict == 'Expired' \
         || (has(self.spec.decision) && self.spec.decision.verdict == self.status.counted.verdict)",
    )
    .message("a counted decision is Expired, or the decision of the spec")
}
