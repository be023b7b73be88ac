//! The kind `Model`: a language model that Skills can use.

use super::shared::{ConfigMapKeyRef, SecretKeyRef, conditions_schema, duration_schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::Duration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language model: its provider, address and API key. A Skill of the same namespace names it in `spec.engine.model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Model",
    namespaced,
    status = "ModelStatus",
    derive = "PartialEq",
    doc = "Model is a language model that Skills of the namespace can use: its provider, address and API key.",
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
    validation = super::shared::name_rule(),
    validation = Rule::new("!has(self.spec.fallback) || !(self.metadata.name in self.spec.fallback)").message("a Model cannot be its own fallback").field_path(".spec.fallback")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.baseUrl.matches('^https?://[^/?#@ ]+(/[^?# ]*)?$')").message("must be an http or https URL without user, query or fragment, such as https://api.openai.com/v1").field_path(".baseUrl"),
    validation = Rule::new("!has(self.proxy) || self.proxy.matches('^https?://[^/?#@ ]+/?$')").message("must be an http or https URL without user and path, such as http://proxy.example:3128").field_path(".proxy"),
    validation = Rule::new("!has(self.ca) || self.baseUrl.startsWith('https://')").message("is only allowed with an https baseUrl").field_path(".ca"),
    validation = Rule::new("!has(self.maxOutputTokens) || self.maxOutputTokens < (has(self.contextWindow) ? self.contextWindow : 128000)").message("must leave room for the prompt: less than contextWindow (default: 128000)").field_path(".maxOutputTokens")
)]
pub struct ModelSpec {
    /// The wire protocol. `openai` is the Chat Completions API of OpenAI and compatible servers. `anthropic` is the Messages API.
    pub provider: ModelProvider,
    /// The name of the model at the provider, such as `gpt-5-mini` or `claude-sonnet-5`.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// The URL of the API without `/chat/completions` or `/messages`, such as `https://api.openai.com/v1` or
    /// `https://api.anthropic.com/v1`. A change applies to new pods.
    #[schemars(length(min = 1, max = 2048))]
    pub base_url: String,
    /// The API key. Omit it for a server that needs none. A change in the Secret applies from the next request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The context window, in tokens, input and output together. At 80 % of it, the worker moves older tool results out of the
    /// prompt; the model can read them again. Default: 128000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8_192, max = 10_000_000))]
    pub context_window: Option<u64>,
    /// The largest answer, in tokens. Each request reserves this number of the Job's token budget. Default for `anthropic`: 8192,
    /// or a quarter of the context window if that is less. Default for `openai`: the limit of the server, with a reserve of 4096
    /// tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256, max = 1_000_000))]
    pub max_output_tokens: Option<u64>,
    /// The longest time without a part of the answer, such as `120s` or `2m`. It applies until the answer begins, and between two
    /// parts. Default: 120s.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
    /// The trusted CA certificates, as PEM. They replace the default, which is the certificates of the worker's image.
    /// A change applies from the next request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaRef>,
    /// The URL of the proxy, such as `http://proxy.example:3128`. Default: none. Proxy variables in the environment of a pod are
    /// ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub proxy: Option<String>,
    /// The names of the Models that the worker asks, in this order, if this one does not answer. Each is followed by its own
    /// fallbacks. At most 8 in total.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")), extend("x-kubernetes-list-type" = "set"))]
    pub fallback: Vec<String>,
}

impl ModelSpec {
    /// The default of `timeout`, in seconds.
    pub const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

    /// The default of `contextWindow`, in tokens.
    pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
}

/// A wire protocol of language models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelProvider {
    /// OpenAI chat completions.
    #[default]
    Openai,
    /// Anthropic Messages.
    Anthropic,
}

/// A reference to a secret value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: SecretKeyRef,
}

/// A reference to certificates. Exactly one of `secretKeyRef` and `configMapKeyRef` is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.secretKeyRef) != has(self.configMapKeyRef)").message("exactly one of secretKeyRef and configMapKeyRef is needed"))]
pub struct CaRef {
    /// A key of a Secret in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// A key of a ConfigMap in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<ConfigMapKeyRef>,
}

/// The observed state of a Model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The condition `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
