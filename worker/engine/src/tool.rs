//! Tools as the engine knows them.

use bloomery_crds::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as the MCP server listed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The server's hint that it changes nothing. `Some(false)` takes the Skill's claim away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
}

/// A tool of the Job: what was listed, and what the Skill says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueTool {
    /// Its name at the server.
    pub name: String,
    /// Its name for the provider, which takes `[A-Za-z0-9_-]{1,64}` only.
    pub alias: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// Digest of name, description and schema.
    pub digest: Digest,
    /// Who answers calls of it.
    #[serde(default, skip_serializing_if = "ToolSource::is_server")]
    pub source: ToolSource,
    /// Declared by the Skill, and not denied by the server: calls change nothing.
    pub read_only: bool,
    /// Declared by the Skill: a call whose answer was lost may be sent again.
    pub idempotent: bool,
    /// Whether the model sees it.
    pub visible: bool,
}

/// Who answers calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolSource {
    /// The Skill's MCP server.
    #[default]
    Server,
    /// The worker itself.
    Core,
}

impl ToolSource {
    // By reference, as serde asks it.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_server(&self) -> bool {
        *self == Self::Server
    }
}
