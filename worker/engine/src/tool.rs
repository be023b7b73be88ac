//! Tools: the definitions that a server lists, and the tools in the catalogue of a Job.

use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pins::PinnedTool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The longest name of a tool that approvers see, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 128;

/// A tool as the MCP server listed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The tool's name.
    pub name: String,
    /// The tool's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
    /// The JSON Schema of the structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// All hints of the server.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<String, Value>,
}

impl ListedTool {
    /// Returns the digests of this definition that a log may contain: the digest of this version of Bloomery, and the one that
    /// earlier versions recorded.
    pub fn possible_digests(&self) -> [Digest; 2] {
        [self.digest(), self.older_digest()]
    }

    /// Returns the digest of the definition, which covers all fields (`docs/explanation/design.md`, section 6).
    pub fn digest(&self) -> Digest {
        // Destructured, so that no new field is left out.
        let Self { name, title, description, input_schema, output_schema, annotations } = self;
        Digest::of_value(&json!({
            "name": name, "title": title, "description": description, "inputSchema": input_schema,
            "outputSchema": output_schema, "annotations": annotations,
        }))
    }

    /// Returns the pin of this definition.
    pub fn pin(&self) -> PinnedTool {
        let parts =
            [&Value::from(self.description.as_str()), &self.input_schema, &Value::Object(self.annotations.clone())];
        PinnedTool::new(&self.name, &self.digest(), parts)
    }

    /// Returns the digest that earlier versions recorded: it does not cover the title, the output schema and the hints.
    fn older_digest(&self) -> Digest {
        let Self { name, description, input_schema, .. } = self;
        Digest::of_value(&json!({"name": name, "description": description, "inputSchema": input_schema}))
    }

    /// Returns the server's hint that calls change nothing. `false` overrules the Skill; `true` has no effect.
    pub fn read_only_hint(&self) -> Option<bool> {
        self.annotations.get("readOnlyHint")?.as_bool()
    }

    /// Returns the approximate size of the definition, in bytes.
    pub fn bytes(&self) -> usize {
        let Self { name, title, description, input_schema, output_schema, annotations } = self;
        let texts = name.len() + description.len() + title.as_ref().map_or(0, String::len);
        let hints: usize = annotations.iter().map(|(name, hint)| name.len() + hint.to_string().len()).sum();
        texts + input_schema.to_string().len() + output_schema.as_ref().map_or(0, |s| s.to_string().len()) + hints
    }
}

/// A tool of the Job: the listed definition, with the properties that the Skill declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueTool {
    /// The name in the Skill and on the server.
    pub name: String,
    /// The name for the model's provider, which accepts `[A-Za-z0-9_-]{1,64}` only.
    pub alias: String,
    /// The description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
    /// The JSON Schema of the structured output, if the server lists one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The digest of the definition when the tools were fixed.
    pub digest: Digest,
    /// The part that performs calls.
    #[serde(default, skip_serializing_if = "ToolSource::is_server")]
    pub source: ToolSource,
    /// Whether calls change nothing. For a server's tool: the Skill declares so, and the server's hint does not contradict.
    pub read_only: bool,
    /// Whether a call may be sent again after its answer was lost. For a server's tool: the Skill declares so.
    pub idempotent: bool,
    /// Whether the model sees it.
    pub visible: bool,
}

impl CatalogueTool {
    /// Returns whether a server's listing has the fixed definition.
    pub(crate) fn matches(&self, listed: &ListedTool) -> bool {
        listed.possible_digests().contains(&self.digest)
    }

    /// Returns the name as approvers see it: that under which a call is sent. The log could pair any alias with it.
    pub(crate) fn shown_name(&self) -> String {
        bounded(&self.name, MAX_SHOWN_NAME_BYTES)
    }

    /// Returns the arguments that the schema declares but does not require.
    pub(crate) fn optional_arguments(&self) -> Vec<String> {
        let required = required_fields(&self.input_schema);
        let properties = self.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.map(|(name, _)| name).filter(|name| !required.contains(&name.as_str())).cloned().collect()
    }
}

/// Returns the fields that a schema requires.
pub(crate) fn required_fields(schema: &Value) -> Vec<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The part that performs the calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolSource {
    /// The Skill's MCP server.
    #[default]
    Server,
    /// The worker.
    Core,
}

impl ToolSource {
    // serde passes the value by reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_server(&self) -> bool {
        *self == Self::Server
    }
}
