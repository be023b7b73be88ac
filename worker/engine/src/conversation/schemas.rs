//! The schemas of tools, compiled where a call first needs them: most tools are never called, and what compiles the first
//! schema takes longer to get ready than all that is done before the first request.

use crate::gate::schema::Schema;
use crate::tool::CatalogueTool;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// The schemas of each tool, by alias.
#[derive(Debug, Default)]
pub(super) struct Schemas(BTreeMap<String, OfTool>);

#[derive(Default)]
struct OfTool {
    arguments: OnceLock<Schema>,
    output: OnceLock<Schema>,
}

/// Which of them is compiled already is no part of the state: one that is folded anew has the same ones.
impl fmt::Debug for OfTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfTool").finish_non_exhaustive()
    }
}

impl Schemas {
    pub(super) fn of(tools: &[CatalogueTool]) -> Self {
        Self(tools.iter().map(|tool| (tool.alias.clone(), OfTool::default())).collect())
    }

    /// Of its arguments.
    pub(super) fn arguments(&self, tool: &CatalogueTool) -> Option<&Schema> {
        let schemas = self.0.get(&tool.alias)?;
        Some(schemas.arguments.get_or_init(|| Schema::compile(&tool.input_schema)))
    }

    /// Of its structured output, where the server lists one.
    pub(super) fn output(&self, tool: &CatalogueTool) -> Option<&Schema> {
        let (schemas, schema) = (self.0.get(&tool.alias)?, tool.output_schema.as_ref()?);
        Some(schemas.output.get_or_init(|| Schema::compile(schema)))
    }
}
