//! The compiled schemas of tools. A schema is compiled when a call first needs it, because compiling all schemas would delay the
//! first request to the model.

use crate::schema::Schema;
use crate::tool::CatalogueTool;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// The schemas of each tool, by alias.
#[derive(Debug, Default)]
pub(super) struct Schemas(BTreeMap<String, ToolSchemas>);

#[derive(Default)]
struct ToolSchemas {
    arguments: OnceLock<Schema>,
    output: OnceLock<Schema>,
}

/// Leaves out the compiled schemas, which are not part of the conversation's state.
impl fmt::Debug for ToolSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSchemas").finish_non_exhaustive()
    }
}

impl Schemas {
    pub(super) fn new(tools: &[CatalogueTool]) -> Self {
        Self(tools.iter().map(|tool| (tool.alias.clone(), ToolSchemas::default())).collect())
    }

    /// Returns the schema of the tool's arguments.
    pub(super) fn arguments(&self, tool: &CatalogueTool) -> Option<&Schema> {
        let schemas = self.0.get(&tool.alias)?;
        Some(schemas.arguments.get_or_init(|| Schema::compile(&tool.input_schema)))
    }

    /// Returns the schema of the tool's structured output, if its server lists one.
    pub(super) fn output(&self, tool: &CatalogueTool) -> Option<&Schema> {
        let (schemas, schema) = (self.0.get(&tool.alias)?, tool.output_schema.as_ref()?);
        Some(schemas.output.get_or_init(|| Schema::compile(schema)))
    }
}
