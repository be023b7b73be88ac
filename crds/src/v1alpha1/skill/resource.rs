//! What a Skill needs from outside (seed 000, "Resource-Based Design").

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something from outside that Jobs of the Skill bind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
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
