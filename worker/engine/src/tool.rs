//! Tools as the engine knows them.

use bloomery_crds::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A tool as the MCP server listed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's hints, all of them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<String, Value>,
}

impl ListedTool {
    /// What a log may have as the digest of the tool as it is here: that of this version, and of those before it.
    pub fn definitions(&self) -> [Digest; 2] {
        [self.digest(), self.older_digest()]
    }

    /// What tells one version of a tool from another: all that its server says of it (`docs/explanation/design.md`, section 6).
    pub fn digest(&self) -> Digest {
        // Destructured: what a server says of a tool and is not pinned, it could change unseen.
        let Self { name, title, description, input_schema, output_schema, annotations } = self;
        Digest::of_value(&json!({
            "name": name, "title": title, "description": description, "inputSchema": input_schema,
            "outputSchema": output_schema, "annotations": annotations,
        }))
    }

    /// What the digest of a tool was made of before output schemas and hints were pinned: logs have it.
    fn older_digest(&self) -> Digest {
        let Self { name, description, input_schema, .. } = self;
        Digest::of_value(&json!({"name": name, "description": description, "inputSchema": input_schema}))
    }

    /// The server's hint that calls change nothing: false takes the Skill's claim away, true gives nothing.
    pub fn read_only_hint(&self) -> Option<bool> {
        self.annotations.get("readOnlyHint")?.as_bool()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        let Self { name, title, description, input_schema, output_schema, annotations } = self;
        let texts = name.len() + description.len() + title.as_ref().map_or(0, String::len);
        let hints: usize = annotations.iter().map(|(name, hint)| name.len() + hint.to_string().len()).sum();
        texts + input_schema.to_string().len() + output_schema.as_ref().map_or(0, |s| s.to_string().len()) + hints
    }
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
    /// The JSON Schema of its structured output, where its server lists one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Digest of all that its server said of it when the tools were fixed.
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
    /// Returns whether a server's listing has the fixed definition.
    pub(crate) fn matches(&self, listed: &ListedTool) -> bool {
        listed.definitions().contains(&self.digest)
    }

    /// The arguments that its schema declares and does not require.
    pub(crate) fn optional(&self) -> Vec<String> {
        let required = required(&self.input_schema);
        let properties = self.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(|(name, _)| name).filter(|name| !required.contains(&name.as_str())).cloned().collect()
    }
}

/// The fields that a schema requires.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
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
