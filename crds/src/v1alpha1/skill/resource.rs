//! What a Skill needs from outside (seed 000, "Resource-Based Design").

use super::endpoint::{EndpointAuth, EndpointRule};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something from outside that Jobs of the Skill bind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.auth) || self.type == 'api_endpoint'").message("is for an api_endpoint").field_path(".auth"))]
#[x_kube(validation = Rule::new("!has(self.rules) || self.type == 'api_endpoint'").message("is for an api_endpoint").field_path(".rules"))]
pub struct ResourceDeclaration {
    /// Its name, by which a Job binds it and the persona refers to it.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub name: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// Whether a Job must bind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// What an `api_endpoint` is sent with each call, so that it knows who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<EndpointAuth>,
    /// Which calls an `api_endpoint` may be sent by the tools `http_get` and `http_request`; any other is denied. Default:
    /// GET and HEAD of every path below the URL that the Job binds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    pub rules: Option<Vec<EndpointRule>>,
}

/// What kind of thing a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ResourceType {
    /// A directory, or a file, of a PersistentVolumeClaim.
    Filesystem,
    /// Where a database or a service is, its password included: from a Secret only.
    ConnectionString,
    /// The URL of an API.
    ApiEndpoint,
    /// A secret value: from a Secret only.
    Credential,
}

impl ResourceType {
    /// Whether its value is a secret, which no prompt, event or log may hold.
    pub fn is_secret(self) -> bool {
        match self {
            Self::ConnectionString | Self::Credential => true,
            Self::Filesystem | Self::ApiEndpoint => false,
        }
    }
}
