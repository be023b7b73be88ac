//! Declarations of tools.

use super::super::shared::duration_schema;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// The declaration of a tool. Without a declaration, a tool counts as having an effect: if the answer to a call is lost, the call is
/// not repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.timeout) || duration(self.timeout) <= duration('4m')").message("must be at most 4m: a pod may outlive the Job's duration by 5m only").field_path(".timeout"))]
pub struct ToolDeclaration {
    /// The name of the tool at the MCP server, or a prefix of names with `*` at the end. The `policy`, the `inputs` and `sends` of all
    /// matching declarations apply. All other fields are those of the longest name that matches.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$"))]
    pub name: String,
    /// A description for the model, if the server has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
    /// The arguments, as rules for calls. The gate denies a call that breaks one, in addition to the schema of the server. The condition
    /// `SkillAsWritten` of each Job names differences between the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub inputs: Vec<ToolInput>,
    /// The expected structured output. The schema comes from the server; the condition `SkillAsWritten` of each Job names
    /// differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ToolOutput>,
    /// The rules for calling the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<CallPolicy>,
    /// True if the tool changes nothing. Its calls can run in parallel and be repeated. This field has no effect if the server says that
    /// the tool is not read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The arguments of a read-only tool that reach a place outside, such as the URL of a web page. `policy.effects` applies to a call if
    /// such an argument has a value that people did not write. It has no effect if a rule names the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub sends: Vec<String>,
    /// True if a second call with the same call key has no further effect. The worker can then repeat a call whose answer was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The timeout of a call, such as `30s`, at most `4m`. Default: 1m.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
}

/// The expected structured output of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// The JSON type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueType>,
    /// A description. The model reads it after that of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// The fields, if it is an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub fields: Vec<OutputField>,
}

/// An expected field of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputField {
    /// The name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The JSON type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// True if every output must contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
}

/// An argument of a tool, with the rules for its values. Null counts as no argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.minimum) || has(self.maximum)) || self.type in ['number', 'integer']").message("minimum and maximum need the type number or integer").field_path(".type"))]
#[x_kube(validation = Rule::new("!(has(self.enum) || has(self.pattern)) || self.type == 'string'").message("enum and pattern need the type string").field_path(".type"))]
#[x_kube(validation = Rule::new("!(has(self.minimum) && has(self.maximum)) || self.minimum <= self.maximum").message("must be at least minimum").field_path(".maximum"))]
pub struct ToolInput {
    /// The name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The JSON type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// True if every call must contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// A description for the model, unless the MCP server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// The smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// The possible texts.
    #[serde(rename = "enum", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 256)), extend("x-kubernetes-list-type" = "set"))]
    pub values: Option<Vec<String>>,
    /// A regular expression that the whole text must match, such as `DE[0-9]{20}`. It has no look-around and no back-references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub pattern: Option<String>,
}

impl ToolDeclaration {
    /// Returns whether the declaration limits the calls of the tool.
    pub fn has_rules(&self) -> bool {
        self.policy.is_some() || self.inputs.iter().any(ToolInput::is_limited)
    }
}

impl ToolInput {
    /// Returns whether a rule limits the values further than the type does.
    pub fn is_limited(&self) -> bool {
        self.minimum.is_some() || self.maximum.is_some() || self.values.is_some() || self.pattern.is_some()
    }
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

/// The rules for calling a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.condition) || !((has(self.allowed) && self.allowed == 'conditional') || (has(self.requiresApproval) && self.requiresApproval == 'conditional'))").message("conditional needs a condition").field_path(".condition"))]
#[x_kube(validation = Rule::new("!has(self.condition) || (has(self.allowed) && self.allowed == 'conditional') || (has(self.requiresApproval) && self.requiresApproval == 'conditional')").message("a condition needs allowed: conditional or requiresApproval: conditional").field_path(".condition"))]
#[x_kube(validation = Rule::new("has(self.condition) || has(self.allowed) || has(self.requiresApproval)").message("needs allowed or requiresApproval"))]
pub struct CallPolicy {
    /// The calls that are allowed. Default: `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<When>,
    /// The calls that a person must approve. Default: `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<When>,
    /// The condition for `conditional`, in CEL over the arguments, such as `amount > 500`. `allowed` or `requiresApproval` must be
    /// `conditional`. If the condition cannot be evaluated, `allowed` denies the call, and `requiresApproval` holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub condition: Option<String>,
    /// The reason of the rules, for people and for the model. Default: the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
}

impl CallPolicy {
    /// Returns whether the policy decides about calls.
    pub fn decides(&self) -> bool {
        self.allowed.is_some() || self.requires_approval.is_some()
    }
}

/// The calls that a rule applies to: every call, those for which the condition is true, or none. The default of `allowed` is
/// `always`, that of `requiresApproval` is `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Every call.
    Always,
    /// Calls for which the condition is true.
    Conditional,
    /// No call.
    Never,
}
