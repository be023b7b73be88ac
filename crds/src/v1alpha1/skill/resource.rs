//! The resources that a Skill needs.

use super::endpoint::{EndpointAuth, EndpointRule};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A resource that Jobs of the Skill bind: a file system, an API or a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.auth) || self.type == 'api_endpoint'").message("is only allowed for an api_endpoint").field_path(".auth"))]
#[x_kube(validation = Rule::new("!has(self.rules) || self.type == 'api_endpoint'").message("is only allowed for an api_endpoint").field_path(".rules"))]
pub struct ResourceDeclaration {
    /// The name. Bindings of Jobs and the persona refer to the resource by this name.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// True if every Job must bind the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The purpose of the resource, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// The authentication of calls. Only for an `api_endpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<EndpointAuth>,
    /// The allowed calls of the tools `http_get` and `http_request`. Other calls are denied. Only for an `api_endpoint`.
    /// Default: GET and HEAD of every path below the bound URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    pub rules: Option<Vec<EndpointRule>>,
}

/// The type of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ResourceType {
    /// A directory or a file of a PersistentVolumeClaim.
    Filesystem,
    /// The address of a database or a service, with its password. Only from a Secret.
    ConnectionString,
    /// The URL of an API.
    ApiEndpoint,
    /// A secret value. Only from a Secret.
    Credential,
}

impl ResourceType {
    /// Returns whether values of the type are secret: no prompt, event or log may contain them.
    pub fn is_secret(self) -> bool {
        match self {
            Self::ConnectionString | Self::Credential => true,
            Self::Filesystem | Self::ApiEndpoint => false,
        }
    }
}
