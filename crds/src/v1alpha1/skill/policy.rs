//! The policy of a Skill.

use super::super::shared::{ConfigMapKeyRef, duration_schema};
use crate::tool_pattern::matches;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeMap;

/// The rules that the gates enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("!has(self.lists) || !has(self.listsFrom) || self.listsFrom.all(name, !(name in self.lists))").message("a list is in lists or in listsFrom, not in both").field_path(".listsFrom"))]
pub struct Policy {
    /// The tools that the model can see and call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolPolicy>,
    /// Rules in words. Rules of certain forms are compiled, and the pre-tool gate enforces them. The model reads the others.
    /// The finalization gate checks all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Guardrails>,
    /// Workflows: steps with a fixed order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workflows: Vec<Workflow>,
    /// The calls that a person must approve, and calls that are denied by their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub approvals: Vec<ApprovalRule>,
    /// Named lists of texts for conditions, such as `recipient in lists.payees`. At most 16 lists of 500 texts. A condition can use a
    /// list whose name has only letters, digits and `_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "lists_schema")]
    pub lists: BTreeMap<String, Vec<String>>,
    /// Named lists whose texts are in ConfigMaps. Conditions read them like those in `lists`. The operator reads the ConfigMaps when it
    /// compiles the Skill. If one changes, new Jobs use its new texts, and Jobs that have started keep the old ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub lists_from: BTreeMap<String, ListSource>,
    /// Limits over several calls: on their number, or on the sum of an argument. Each applies in addition to all other rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub limits: Vec<CallLimit>,
    /// The rule for calls of tools that are not read-only and that no rule names. Default: `allow`. A tool is named by a rule with its full
    /// name that can let calls pass or hold them: a rule of `approvals` without `action: deny`, a `policy` in `tools`, or a guardrail about
    /// the tool. A prefix with `*`, a rule that denies, and `limits` apply in addition. The rule also applies to a call of a read-only
    /// tool that `sends` a value which people did not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectPolicy>,
    /// True if rules may name tools that the MCP server does not list or, without a server, that Jobs do not have, and arguments that
    /// neither the schema of the tool nor `inputs` name, if the schema accepts any argument. By default, a Job whose Skill has such a rule
    /// ends before it begins, because the rule protects nothing. It does so in any case if the schema does not accept the argument, or if a
    /// rule compares values of different types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_unmatched: Option<bool>,
}

impl Policy {
    /// Returns the entries of `expect` of all workflows, each with its path and its workflow.
    pub fn expectations(&self) -> impl Iterator<Item = (String, &Workflow, &StepExpectation)> {
        self.workflows.iter().enumerate().flat_map(|(at, workflow)| {
            let path = move |nth: usize| format!("spec.policy.workflows[{at}].expect[{nth}]");
            workflow.expect.iter().enumerate().map(move |(nth, expected)| (path(nth), workflow, expected))
        })
    }
}

fn lists_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "type": "array", "maxItems": 500, "items": {"type": "string", "minLength": 1, "maxLength": 256},
        },
    })
}

/// The place of the texts of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSource {
    /// A key of a ConfigMap in the same namespace. Each line of its value is a text: at most 500 of at most 256 characters. Spaces
    /// around a text and empty lines do not count.
    pub config_map_key_ref: ConfigMapKeyRef,
}

/// The rule for calls with an effect that no other rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectPolicy {
    /// The calls are allowed.
    Allow,
    /// The calls wait for the decision of a person.
    RequireApproval,
    /// The calls are denied.
    Deny,
}

/// The tools that the model can see and call. `blocked` takes precedence over `allowed`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Names of tools, or prefixes of names with `*` at the end. Without this field, all tools of the Skill's MCP server are
    /// allowed. An empty list allows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub allowed: Option<Vec<String>>,
    /// Names of tools, or prefixes of names with `*` at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub blocked: Vec<String>,
}

impl ToolPolicy {
    /// Returns the entry of `blocked` that names a tool.
    pub fn blocking_entry(&self, tool: &str) -> Option<&String> {
        self.blocked.iter().find(|pattern| matches(pattern, tool))
    }

    /// Returns whether `allowed` names a tool of the server, or is missing.
    pub fn allows(&self, tool: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|pattern| matches(pattern, tool)))
    }
}

/// Rules in words.
///
/// A rule is compiled if the whole sentence has one of these forms: "Never use <tool>", "<tool> requires approval", or
/// "<field> > <number>". The name of a tool, or a prefix of names with `*` at the end, is enough under `never`. A comparison is forbidden under `never` and required under `always`. If a comparison ends with "needs
/// approval" or "requires approval", the call is held. Every other rule stays text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Guardrails {
    /// Actions that the agent must never take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub never: Vec<String>,
    /// Actions that the agent must always take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub always: Vec<String>,
}

/// Steps with a fixed order. A step with the name of a tool is done when the tool was called. The agent closes other steps, which are
/// in words, with the tool `subgoal_done`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("!has(self.expect) || self.expect.all(expected, expected.step in self.steps)").message("each step must be one of steps").field_path(".expect"))]
pub struct Workflow {
    /// The name of the workflow.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The steps, in their order. A step may be a prefix of tools' names with `*` at the end.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 64)))]
    pub steps: Vec<String>,
    /// True if the workflow is enforced. Then each step needs all earlier steps. At the end of a Job, the workflow must be complete
    /// if the detected intent is one of `intents`. Without `intents`, it must be complete if a step with an effect was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Requirements for completing steps. By default, a completed call of its tool completes a step, and every result closes a step in
    /// words. An entry adds a condition for the call, or for a step in words the tool whose result closes it, or an approver. If a step
    /// has several entries, all of them must be met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub expect: Vec<StepExpectation>,
    /// The intents that the workflow serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub intents: Vec<String>,
}

/// A requirement that must be met to complete a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.condition) || has(self.evidence) || has(self.approver)").message("needs a condition, evidence or an approver"))]
pub struct StepExpectation {
    /// The step.
    #[schemars(length(min = 1, max = 64))]
    pub step: String,
    /// A condition in CEL over the arguments of the call, its `result`, and the earlier steps of the workflow, such as
    /// `result.verified == true` or `args.order_id == steps.verify_identity.args.order_id`. A call completes the step only if the
    /// condition is true. If the workflow is required and the condition does not read `result`, a call of the step's tool for which it is
    /// not true is denied. For a step in words, the condition is about the call that `evidence` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub condition: Option<String>,
    /// For a step in words: the calls whose results close it. Default: every completed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<StepEvidence>,
    /// For a step in words: the approver who must agree before the step is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
    /// The reason, for people and for the model. Default: the condition, or a sentence with the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
}

/// The calls whose results close a step in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepEvidence {
    /// The name of the tool, or a prefix of names with `*` at the end. `ask_user` stands for the answer of a person.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$"))]
    pub tool: String,
}

/// A rule that holds calls of a tool until a person approves them, or denies them. If several rules apply to a call, the strictest
/// wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRule {
    /// The name of the tool, or a prefix of names with `*` at the end.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$"))]
    pub tool_id: String,
    /// A condition in CEL over the arguments, such as `amount > 500`, and over the conversation, such as `!fromUser(recipient)`. Default:
    /// every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub when: Option<String>,
    /// The reason of the rule, for people and for the model. Default: the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
    /// The action: `require_approval`, which is the default, or `deny`. A condition without a result has the same effect as a true one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ApprovalAction>,
    /// The approver. If it is named here, it also satisfies `requiresApproval` of the tool. Default: `engine.approver`, else
    /// `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
}

/// A limit on the number of calls, or on the sum of an argument over calls. A call counts from its start, and no longer if it fails. A
/// call that would exceed the limit is held or denied, and so is a call whose argument is missing or not a number of at least 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.sum) != (has(self.count) && self.count)").message("needs either sum or count: true"))]
#[x_kube(validation = Rule::new("has(self.window) == (self.per == 'skill')").message("per: skill needs a window, and per: job has none").field_path(".window"))]
#[x_kube(validation = Rule::new("!has(self.window) || duration(self.window) <= duration('744h')").message("must be at most 744h").field_path(".window"))]
pub struct CallLimit {
    /// The name of the tool, or a prefix of names with `*` at the end. All tools of a prefix share the limit.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$"))]
    pub tool: String,
    /// The argument whose values are added: a number of at least 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub sum: Option<String>,
    /// True to count the calls, in place of `sum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<bool>,
    /// The calls that are added: `job` for those of the same Job, `skill` for those of all Jobs of the Skill within the window.
    pub per: LimitScope,
    /// The time after which a call no longer counts, such as `24h`, at most `744h`. Only with `per: skill`.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub window: Option<Duration>,
    /// The largest sum, or the largest number of calls.
    #[schemars(range(min = 0))]
    pub max: Number,
    /// The action beyond the limit: `require_approval`, which is the default, or `deny`. An approved call counts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ApprovalAction>,
    /// The approver. Default: `engine.approver`, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
    /// The reason of the limit, for people and for the model. The amounts follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
}

/// The calls that a limit adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// The calls of the same Job.
    Job,
    /// The calls of all Jobs of the Skill.
    Skill,
}

/// The action of an approval rule. The default is `require_approval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAction {
    /// The call waits for the decision of a person.
    RequireApproval,
    /// The call is denied.
    Deny,
}
