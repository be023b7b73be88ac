//! Tools as the engine knows them.

use bloomery_crds::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// Its name, as the Skill and the server have it.
    pub name: String,
    /// Its name for the provider, which takes `[A-Za-z0-9_-]{1,64}` only.
    pub alias: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// Digest of name, description and schema, as they were listed.
    pub digest: Digest,
    /// Who answers calls of it.
    #[serde(default, skip_serializing_if = "ToolSource::is_server")]
    pub source: ToolSource,
    /// Calls change nothing: as a core tool says itself, and of a server's where the Skill declares it and the server
    /// does not deny it.
    pub read_only: bool,
    /// A call whose answer was lost may be made again: as a core tool says itself, and of a server's where the Skill
    /// declares it.
    pub idempotent: bool,
    /// Whether the model sees it.
    pub visible: bool,
}

impl CatalogueTool {
    /// The arguments that its schema requires.
    pub(crate) fn required(&self) -> Vec<&str> {
        let required = self.input_schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The arguments that its schema declares and does not require.
    pub(crate) fn optional(&self) -> Vec<String> {
        let required = self.required();
        let properties = self.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(|(name, _)| name).filter(|name| !required.contains(&name.as_str())).cloned().collect()
    }
}

/// What tells one version of a tool from another: its name, description and schema.
pub(crate) fn digest(name: &str, description: &str, input_schema: &Value) -> Digest {
    Digest::of_value(&json!({"name": name, "description": description, "inputSchema": input_schema}))
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
