//! The rules of a Skill, gate by gate (seed 002, section 3.1).

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules that gates enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Which tools may be seen and called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolPolicy>,
    /// Rules in words. Those that say something mechanical are compiled for the pre-tool gate; the model reads
    /// the others, and the finalization gate checks all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Guardrails>,
    /// Steps that have an order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workflows: Vec<Workflow>,
    /// Which calls a person has to approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub approvals: Vec<ApprovalRule>,
}

/// Which of the Skill's tools may be seen and called. `blocked` wins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Names, or beginnings of names that end in `*`. Absent means every tool of the Skill's MCP server; an
    /// empty list means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub allowed: Option<Vec<String>>,
    /// Names, or beginnings of names that end in `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub blocked: Vec<String>,
}

/// Rules in words.
///
/// Compiled are, where the whole rule says nothing else: "Never use <tool>", "<field> > <number>" (forbidden under
/// `never`, required under `always`, held where it ends in "needs approval" or "requires approval"), and
/// "<tool> requires approval". Everything else stays text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Guardrails {
    /// What must never be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub never: Vec<String>,
    /// What must always be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub always: Vec<String>,
}

/// Steps that have an order. A step named like a tool is that tool; another is closed by `subgoal_done`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// The workflow's name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Its steps, in their order.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 64)))]
    pub steps: Vec<String>,
    /// Binds the order always: a step needs every earlier step. It must be complete at the end where the
    /// detected intent is one of `intents`, or, without `intents`, where a step with effect was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The intents that the workflow serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub intents: Vec<String>,
}

/// Which calls of a tool a person has to approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRule {
    /// The tool.
    #[schemars(length(min = 1, max = 128))]
    pub tool_id: String,
    /// A condition over the arguments in CEL, such as `amount > 500`. Absent: every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub when: Option<String>,
    /// What happens. Default, and the only one: `require_approval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ApprovalAction>,
    /// Who approves. Default: `engine.approver`, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
}

/// What an approval rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAction {
    /// The call waits until a person has decided.
    RequireApproval,
}
