//! Types and schemas that several kinds share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use kube::core::{Duration, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Returns true if a count is 0, so that a document leaves it out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Returns the number of whole seconds in a duration.
pub fn whole_seconds(duration: &Duration) -> u64 {
    std::time::Duration::from(*duration).as_secs()
}

/// The rule for names of objects. They become values of labels, and names of Services, pods and directories. The message
/// contains the path, since the API server allows no `fieldPath` into metadata.
pub(super) fn name_rule() -> Rule {
    Rule::new("self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message(
            "metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', beginning with a letter",
        )
}

/// The schema of a positive duration, such as `30s`, `10m` or `1h30m`. Each part is at least 1.
pub(super) fn duration_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 20, "pattern": "^([1-9][0-9]{0,5}(h|m|s))+$" })
}

/// The schema of an object with any fields.
pub(super) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The schema of the conditions of an object, one per type.
pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": Condition::json_schema(generator),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Limits of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The largest number of model calls in the main loop. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub steps: Option<u32>,
    /// The largest number of tool calls. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub tool_calls: Option<u32>,
    /// The largest number of tokens, input and output together. Default: 200000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub tokens: Option<u64>,
    /// The longest working time, such as `30m` or `1h30m`. Waiting does not count. Default: 30m.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub duration: Option<Duration>,
}

/// A key of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// The key in its `data`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// A key of a ConfigMap in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyRef {
    /// The name of the ConfigMap.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// The key in its `data`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}
