//! The kind `Model`: a language model that a tenant may use.

use super::shared::{ConfigMapKeyRef, SecretKeyRef, conditions_schema, duration_schema};
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
    validation = super::shared::name_rule(),
    validation = Rule::new("!has(self.spec.fallback) || !(self.metadata.name in self.spec.fallback)").message("a Model cannot be its own fallback").field_path(".spec.fallback")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.baseUrl.matches('^https?://[^/?#@ ]+(/[^?# ]*)?$')").message("must be an http or https URL without user, query or fragment, such as https://api.openai.com/v1").field_path(".baseUrl"),
    validation = Rule::new("!has(self.proxy) || self.proxy.matches('^https?://[^/?#@ ]+/?$')").message("must be an http or https URL without user and path, such as http://proxy.example:3128").field_path(".proxy"),
    validation = Rule::new("!has(self.ca) || self.baseUrl.startsWith('https://')").message("certificates are only looked at for an https baseUrl").field_path(".ca"),
    validation = Rule::new("!has(self.maxOutputTokens) || self.maxOutputTokens < (has(self.contextWindow) ? self.contextWindow : 128000)").message("must leave room for the prompt: less than contextWindow, which is 128000 where nothing is said").field_path(".maxOutputTokens")
)]
pub struct ModelSpec {
    /// The wire protocol. `openai` is chat completions, as OpenAI and every compatible server speak it; `anthropic` is
    /// Messages.
    pub provider: ModelProvider,
    /// The provider's name of the model, such as `gpt-5-mini` or `claude-sonnet-5`.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// Where the API is, up to but without `/chat/completions` or `/messages`, such as `https://api.openai.com/v1` or
    /// `https://api.anthropic.com/v1`. A worker keeps the address that its pod began with.
    #[schemars(length(min = 1, max = 2048))]
    pub base_url: String,
    /// The key that requests carry. Leave it out for a server that asks for none. A key that is changed in its Secret is
    /// used from the next request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// How many tokens the model takes in all, in and out. At 80 % of it older results of tools are put aside, and
    /// the model can read them again. Default 128000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8_192, max = 10_000_000))]
    pub context_window: Option<u64>,
    /// How many tokens an answer may have. Default for `anthropic` 8192, at most a quarter of the window; for `openai`
    /// what the server has. As many are set aside of a Job's budget for each request, 4096 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256, max = 1_000_000))]
    pub max_output_tokens: Option<u64>,
    /// How long a request may go without a sign of the model, as `120s` or `2m`: until its answer begins, and between two
    /// parts of it. Default 120s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
    /// The certificates that sign the server's, as PEM. With it no others are trusted; without it those of the worker's
    /// image. One that is changed is used from the next request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaRef>,
    /// The proxy that requests go through, such as `http://proxy.example:3128`. Without it they go through none: what the
    /// environment of a pod says about proxies does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub proxy: Option<String>,
    /// Models of this namespace that are asked, in this order, where this one gives no answer; after each of them, its own
    /// fallbacks. At most 8 in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")), extend("x-kubernetes-list-type" = "set"))]
    pub fallback: Vec<String>,
}

impl ModelSpec {
    /// Seconds that one request may take where the Model says nothing.
    pub const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

    /// Tokens that a model takes in all, where the Model says nothing.
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

/// Where a secret value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: SecretKeyRef,
}

/// Where certificates come from: exactly one of `secretKeyRef` and `configMapKeyRef`.
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
