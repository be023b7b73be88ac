//! What people may want of a Skill (seed 002, section 3.1).

use super::tool::ValueType;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What people may want of the Skill. Where intents are declared, one call of the model finds out which one a Job's
/// goal means, before anything else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intents {
    /// The intents that the Skill serves.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub supported: Vec<Intent>,
    /// What happens to a goal that is none of them. Default: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_domain: Option<OutOfDomain>,
}

/// An intent that the Skill serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Its id.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][-A-Za-z0-9_]*$"))]
    pub id: String,
    /// What the person wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// How people say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)))]
    pub examples: Vec<String>,
    /// What has to be known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub entities: Vec<Entity>,
}

/// Something that a goal names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// Its name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Its type: `string`, `number`, `integer` or `boolean`.
    #[serde(rename = "type")]
    #[x_kube(validation = Rule::new("!(self in ['array', 'object'])").message("must be string, number, integer or boolean"))]
    pub kind: ValueType,
    /// Whether the Job cannot go on without it: it is asked for where the goal does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// What happens to a goal that is none of the Skill's intents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutOfDomain {
    /// `redirect` and `refuse` end the Job as `Refused`, `escalate` leaves it to a person.
    pub action: OutOfDomainAction,
    /// What the person reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub message: Option<String>,
}

/// What happens to a goal that is none of the Skill's intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum OutOfDomainAction {
    /// The person is told where the Skill can help instead.
    Redirect,
    /// The person is told that the Skill does not help.
    Refuse,
    /// A person takes over.
    Escalate,
}
