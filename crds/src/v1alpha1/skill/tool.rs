//! What the author of a Skill says of a tool.

use super::super::shared::duration_schema;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the author says of a tool. A tool of which nothing is said has effects and is not repeatable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.timeout) || duration(self.timeout) <= duration('4m')").message("must be at most 4m: a pod may outlive the Job's duration by 5m only").field_path(".timeout"))]
pub struct ToolDeclaration {
    /// The tool's name, as the MCP server lists it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// What it does, for the model, where the server itself says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
    /// The arguments that the author expects. The schema itself comes from the server; a difference is named in
    /// the condition `SkillAsWritten` of each Job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub inputs: Vec<ToolInput>,
    /// What the author expects of a call's structured output. The schema itself comes from the server; a difference is
    /// named in the condition `SkillAsWritten` of each Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ToolOutput>,
    /// Who may have it called, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<CallPolicy>,
    /// The tool changes nothing: its calls may run at once and be repeated. A server's own hint can take
    /// this claim away, never give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Calling the tool again with the same call key has no further effect, so a call whose answer was lost
    /// may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// How long a call may take, such as `30s`, at most `4m`. Default 1m. The first call of a worker has 30s at least,
    /// since it may have to wait for its server to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
}

/// The structured output that the author expects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Its JSON type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueType>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// Its fields, where it is an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub fields: Vec<ToolInput>,
}

/// An argument, or a field of the output, that the author expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInput {
    /// Its name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Its JSON type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// Whether every call, or every output, must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
}

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ValueType {
    /// Text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

/// When a tool may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.condition) || !((has(self.allowed) && self.allowed == 'conditional') || (has(self.requiresApproval) && self.requiresApproval == 'conditional'))").message("conditional needs a condition").field_path(".condition"))]
pub struct CallPolicy {
    /// Whether it may be called at all. Default `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<When>,
    /// Whether a person has to approve a call. Default `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<When>,
    /// The condition of every `conditional`, over the arguments in CEL, such as `amount > 500`. One that cannot be
    /// decided does not allow, and does hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub condition: Option<String>,
}

/// How often something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// For every call.
    Always,
    /// For calls of which the condition is true.
    Conditional,
    /// For no call.
    Never,
}
