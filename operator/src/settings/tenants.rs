//! What a tenant may ask for, if an annotation of its namespace does not replace the value.

use bloomery_crds::v1alpha1::Limits;
use serde::Deserialize;

/// The limits of every tenant. An empty list of what is allowed allows everything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TenantSettings {
    /// Prefixes of the images that a Skill may run as its MCP server and for its scripts.
    pub allowed_images: Vec<String>,
    /// The largest limits that a Skill may ask for.
    pub max_limits: Limits,
    /// Names of the server's tools that Jobs may call, or prefixes of names with `*` at the end.
    pub allowed_tools: Vec<String>,
    /// Names of the tools that no Job may call, or prefixes of names with `*` at the end.
    pub blocked_tools: Vec<String>,
    /// Names of the models that a Model may name, or prefixes of names with `*` at the end.
    pub allowed_models: Vec<String>,
    /// Prefixes of the URLs that a Model may name.
    pub allowed_model_urls: Vec<String>,
}
