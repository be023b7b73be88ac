//! The definition of a core tool in the catalogue.

use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The effect of a call of a core tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// A call changes nothing outside of the conversation.
    None,
    /// A call changes something, and the same call again changes nothing more.
    Idempotent,
    /// Each call changes something, even if it is the same call again.
    Repeated,
}

/// Reads the arguments of a call. An error is a sentence for the model.
pub(super) fn read_arguments<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("The arguments are invalid: {error}."))
}

/// Returns the schema of an argument that is one of `values`. Without values, which only a Job may know, it accepts every text.
pub(super) fn one_of<T: Serialize>(values: &[T], description: &str) -> Value {
    if values.is_empty() {
        json!({"type": "string", "description": description})
    } else {
        json!({"type": "string", "enum": values, "description": description})
    }
}

/// Returns the definition of a core tool.
pub(super) fn core_tool(name: &str, description: &str, input_schema: Value, effect: ToolEffect) -> CatalogueTool {
    let tool = ListedTool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        ..ListedTool::default()
    };
    CatalogueTool {
        digest: tool.digest(),
        alias: tool.name.clone(),
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: None,
        source: ToolSource::Core,
        read_only: effect == ToolEffect::None,
        idempotent: effect != ToolEffect::Repeated,
        visible: true,
    }
}
