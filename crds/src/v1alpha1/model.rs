//! The kind `Model`: a language model that a tenant may use.

use super::shared::{SecretKeyRef, conditions_schema, duration_schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::Duration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language model of this namespace: which provider speaks for it, where, and with which key.
/// A Skill names it in `spec.engine.model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Model",
    namespaced,
    status = "ModelStatus",
    derive = "PartialEq",
    doc = "Model is a language model of this namespace: which provider speaks for it, where, and with which key.",
    category = "bloomery",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.baseUrl", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = super::shared::name_rule()
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.baseUrl.matches('^https?://[^/?#@ ]+(/[^?# ]*)?$')").message("must be an http or https URL without user, query or fragment, such as https://api.openai.com/v1").field_path(".baseUrl")
)]
pub struct ModelSpec {
    /// The wire protocol. `openai` is chat completions, as OpenAI and every compatible server speak it.
    pub provider: ModelProvider,
    /// The provider's name of the model, such as `gpt-5-mini`.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// Where the API is, up to but without `/chat/completions`, such as `https://api.openai.com/v1`.
    /// A worker keeps the address that its pod began with.
    #[schemars(length(min = 1, max = 2048))]
    pub base_url: String,
    /// The key that requests carry. Leave it out for a server that asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// How many tokens the model takes in all, in and out. At 80 % of it older results of tools are put aside, and
    /// the model can read them again. Default 128000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8_192, max = 10_000_000))]
    pub context_window: Option<u64>,
    /// How long one request may take, as `120s` or `2m`. Default 120s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
}

impl ModelSpec {
    /// Seconds that one request may take where the Model says nothing.
    pub const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

    /// Tokens that a model takes in all, where the Model says nothing.
    pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
}

/// A wire protocol of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelProvider {
    /// OpenAI chat completions.
    Openai,
}

/// Where a secret value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: SecretKeyRef,
}

/// What the operator says of a Model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Reconciling` or `Stalled` where they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
