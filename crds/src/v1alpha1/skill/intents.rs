//! The intents that a Skill serves.

use super::tool::ValueType;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The intents that a Skill serves. One model call detects the intent of a Job's goal before anything else happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intents {
    /// The intents that the Skill serves.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub supported: Vec<Intent>,
    /// The handling of a goal that is not one of the intents. Default: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_domain: Option<OutOfDomain>,
}

/// An intent that the Skill serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The id.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][-A-Za-z0-9_]*$"))]
    pub id: String,
    /// A description of what the person wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// Examples of goals with this intent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)))]
    pub examples: Vec<String>,
    /// The values that a goal with this intent may contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub entities: Vec<Entity>,
    /// The tools that a Job with this intent may call: names, or prefixes of names with `*` at the end. Default: all. Other rules apply as
    /// well. The tools that ask people, read stored results and close steps are always allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub tools: Option<Vec<String>>,
}

/// A value that a goal may contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// The name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The type: `string`, `number`, `integer` or `boolean`.
    #[serde(rename = "type")]
    #[x_kube(validation = Rule::new("!(self in ['array', 'object'])").message("must be string, number, integer or boolean"))]
    pub kind: ValueType,
    /// True if the Job needs the value. The agent asks for a required value that the goal does not contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// The handling of a goal that is not one of the Skill's intents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutOfDomain {
    /// `redirect` and `refuse` end the Job as `Refused`, `escalate` ends it as `Escalated`.
    pub action: OutOfDomainAction,
    /// The message for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub message: Option<String>,
}

/// The handling of a goal that is not one of the Skill's intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum OutOfDomainAction {
    /// The Job is refused, with a message about what the Skill can help with.
    Redirect,
    /// The Job is refused, with a message that the Skill does not help with the goal.
    Refuse,
    /// A person takes the goal over.
    Escalate,
}
