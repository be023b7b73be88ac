//! Fields that several kinds have in common, and the schemas of values with a text form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use kube::core::{Duration, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The whole seconds of a duration that the API server has accepted.
pub fn seconds(duration: &Duration) -> u64 {
    std::time::Duration::from(*duration).as_secs()
}

/// A name that can become a label, a Service, a pod and a directory. The message names the path: the API server
/// takes no `fieldPath` into metadata, whose schema is not ours.
pub(super) fn name_rule() -> Rule {
    Rule::new("self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message(
            "metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', beginning with a letter",
        )
}

/// A positive duration such as `30s`, `10m` or `1h30m`; each part is at least 1.
pub(super) fn duration_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 20, "pattern": "^([1-9][0-9]{0,5}(h|m|s))+$" })
}

/// An object whose fields are not ours to know.
pub(super) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The conditions of an object: one per type, as the API conventions have it.
pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": Condition::json_schema(generator),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Budgets of a conversation. What is not said is the default of the level above.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// How many answers of the model the main loop may take. Default 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub steps: Option<u32>,
    /// How many tool calls may be started. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub tool_calls: Option<u32>,
    /// How many tokens, in and out together, may be spent. Default 200000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub tokens: Option<u64>,
    /// How long the worker may work, as `30m` or `1h30m`; time that a Job waits does not count. Default 30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub duration: Option<Duration>,
}

/// One key of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// The key in its `data`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// One key of a ConfigMap in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyRef {
    /// Name of the ConfigMap.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// The key in its `data`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}
