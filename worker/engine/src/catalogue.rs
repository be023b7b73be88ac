//! The catalogue: the tools of a Job. It combines the listing of the server, the declarations of the Skill, and its policy.

mod drift;
mod schemas;

pub use drift::{Drift, unpinned_tools};

use crate::core_tools;
use crate::event::Event;
use crate::run::Run;
use crate::schema::Schema;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use crate::tool_policy::refusal;
use bloomery_crds::Digest;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::tool_pins::ToolChange;
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration, ToolInput};
use drift::Drifted;
use schemas::Schemas;
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest tool name that model providers accept, in bytes.
const MAX_ALIAS_BYTES: usize = 64;

/// The digits of the hash in an alias.
const SHORT_HASH_DIGITS: usize = 8;

/// The digits of the hash if the alias with the short hash is a tool's name.
const LONG_HASH_DIGITS: usize = 16;

/// The tools of a Job, fixed at its beginning.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: Option<Vec<CatalogueTool>>,
    visible: Vec<CatalogueTool>,
    schemas: Schemas,
    drifted: Drifted,
}

impl Catalogue {
    /// Sets the tools, which stay fixed from now on.
    pub(crate) fn fix(&mut self, tools: &[CatalogueTool]) {
        self.visible = tools.iter().filter(|tool| tool.visible).cloned().collect();
        self.schemas = Schemas::new(tools);
        self.tools = Some(tools.to_vec());
    }

    /// Hides every visible tool for which `is_shown` is false. Returns the hidden ones.
    pub(crate) fn show_only(&mut self, is_shown: impl Fn(&CatalogueTool) -> bool) -> Vec<CatalogueTool> {
        let (shown, hidden) = std::mem::take(&mut self.visible).into_iter().partition(is_shown);
        self.visible = shown;
        hidden
    }

    /// Records the tools that changed or are missing, by the server's names.
    pub(crate) fn add_drift(&mut self, changed: &[String], missing: &[String]) {
        self.drifted.add(changed, missing);
    }

    /// Records the tools that differ from the pins of the Skill. The model does not see them: their descriptions could instruct it.
    pub(crate) fn add_unpinned(&mut self, changes: &[ToolChange]) {
        let is_unpinned = |tool: &CatalogueTool| {
            tool.source == ToolSource::Server && changes.iter().any(|change| change.tool == tool.name)
        };
        self.visible.retain(|tool| !is_unpinned(tool));
        self.drifted.add_unpinned(changes);
    }

    /// Returns whether the tools are fixed.
    pub fn is_fixed(&self) -> bool {
        self.tools.is_some()
    }

    /// Returns a tool by its alias: the name that the model uses.
    pub fn tool(&self, alias: &str) -> Option<&CatalogueTool> {
        self.tools.as_ref()?.iter().find(|tool| tool.alias == alias)
    }

    /// Returns the tools of the server.
    pub fn server_tools(&self) -> impl Iterator<Item = &CatalogueTool> {
        self.tools.iter().flatten().filter(|tool| tool.source == ToolSource::Server)
    }

    /// The tools that the model sees.
    pub fn visible(&self) -> &[CatalogueTool] {
        &self.visible
    }

    /// Returns the compiled schema of a tool's arguments.
    pub fn argument_schema(&self, tool: &CatalogueTool) -> Option<&Schema> {
        self.schemas.arguments(tool)
    }

    /// Returns the error in the structured output of a tool, or nothing. A tool without an output schema may return any output.
    pub fn output_error(&self, alias: &str, output: Option<&Value>) -> Option<String> {
        let schema = self.schemas.output(self.tool(alias)?)?;
        match output {
            Some(output) => schema.first_error(output),
            None => Some("there is none".to_owned()),
        }
    }

    /// Returns the difference between a server's tool and its fixed definition. `name` is the server's name of the tool.
    pub fn drift_of(&self, name: &str) -> Option<Drift> {
        self.drifted.get(name)
    }

    /// Returns a sentence for people about each tool that differs.
    pub fn drift_remarks(&self) -> impl Iterator<Item = String> {
        self.drifted.remarks()
    }

    /// Compares a new listing with the fixed tools. Returns the event of the differences that are not recorded yet.
    pub fn compare(&self, listed: &[ListedTool]) -> Option<Event> {
        self.drifted.compare(self.tools.as_ref()?, listed)
    }
}

/// Returns the event that fixes the tools of a Job, from the listing of its MCP server.
pub fn fix_catalogue(run: &Run, listed: Vec<ListedTool>) -> Event {
    Event::CatalogueFixed { tools: fix(run, listed) }
}

/// Returns the size of a tool's definition in a prompt, in bytes.
pub(crate) fn prompt_bytes(tool: &CatalogueTool) -> usize {
    tool.description.len() + tool.input_schema.to_string().len()
}

/// Fixes the tools of a Job.
///
/// A tool of the server is left out if its name is reserved for a core tool or listed twice, if another tool has the same alias, or
/// if a schema is nested too deep for a line of the log. The gate then denies its calls, as calls of an unknown tool.
///
/// The tools keep the order of the listing, so that the provider can cache the prompt. The core tools follow them.
pub fn fix(run: &Run, listed: Vec<ListedTool>) -> Vec<CatalogueTool> {
    let core = core_tools::offered(run, &listed);
    let listed: Vec<ListedTool> = listed.into_iter().filter(|tool| !core_tools::is_reserved(&tool.name)).collect();
    let mut times_listed: BTreeMap<String, u32> = BTreeMap::new();
    for tool in &listed {
        *times_listed.entry(tool.name.clone()).or_default() += 1;
    }
    let plain_names: Vec<String> = listed.iter().map(|tool| tool.name.clone()).filter(|name| is_plain(name)).collect();
    let tools: Vec<CatalogueTool> = listed
        .into_iter()
        .filter(|tool| times_listed.get(&tool.name) == Some(&1) && is_shallow(tool))
        .map(|tool| catalogue_tool(run, tool, &plain_names))
        .collect();
    let mut times_used: BTreeMap<String, u32> = BTreeMap::new();
    for tool in &tools {
        *times_used.entry(tool.alias.clone()).or_default() += 1;
    }
    let mut tools: Vec<CatalogueTool> =
        tools.into_iter().filter(|tool| times_used.get(&tool.alias) == Some(&1)).collect();
    tools.extend(core);
    tools
}

/// Returns the tools of the log without the properties that the Skill does not give them. A process that can write to the log could
/// make a call with effect a read, which is sent again.
pub(crate) fn as_declared(tools: &[CatalogueTool], skill: &SkillSpec) -> Vec<CatalogueTool> {
    let mut tools = tools.to_vec();
    for tool in tools.iter_mut().filter(|tool| tool.source == ToolSource::Server) {
        let declared = skill.declaration_of(&tool.name);
        tool.read_only &= declared.is_some_and(|declared| declared.read_only == Some(true));
        tool.idempotent &= declared.is_some_and(|declared| declared.idempotent == Some(true));
    }
    tools
}

fn catalogue_tool(run: &Run, tool: ListedTool, plain_names: &[String]) -> CatalogueTool {
    let declared = run.skill.declaration_of(&tool.name);
    // The server is not trusted: its hint can only make a tool not read-only.
    let read_only = declared.is_some_and(|d| d.read_only == Some(true)) && tool.read_only_hint() != Some(false);
    CatalogueTool {
        alias: alias(&tool.name, plain_names),
        digest: tool.digest(),
        read_only,
        idempotent: declared.is_some_and(|d| d.idempotent == Some(true)),
        source: ToolSource::Server,
        visible: refusal(run, ToolSource::Server, &tool.name).is_none(),
        description: description(tool.description, declared),
        name: tool.name,
        input_schema: described(tool.input_schema, declared.map_or(&[], |declared| &declared.inputs)),
        output_schema: tool.output_schema,
    }
}

/// Returns the description of a tool for the model: that of the server or else that of the Skill, and what the Skill says about the
/// output.
fn description(mut listed: String, declared: Option<&ToolDeclaration>) -> String {
    let Some(declared) = declared else { return listed };
    if listed.is_empty() {
        listed.push_str(declared.description.as_deref().unwrap_or_default());
    }
    if let Some(returned) = declared.output.as_ref().and_then(|output| output.description.as_deref()) {
        let separator = if listed.is_empty() { "" } else { "\n" };
        listed.extend([separator, "Returns: ", returned]);
    }
    listed
}

/// Adds the Skill's descriptions of inputs to a schema, where the server has none.
fn described(mut schema: Value, inputs: &[ToolInput]) -> Value {
    for input in inputs {
        let property = schema.get_mut("properties").and_then(|properties| properties.get_mut(&input.name));
        if let (Some(Value::Object(property)), Some(description)) = (property, &input.description) {
            property.entry("description").or_insert_with(|| description.as_str().into());
        }
    }
    schema
}

fn is_shallow(tool: &ListedTool) -> bool {
    depth(&tool.input_schema) <= MAX_DEPTH
        && tool.output_schema.as_ref().is_none_or(|schema| depth(schema) <= MAX_DEPTH)
}

/// Returns whether providers accept a name.
fn is_plain(name: &str) -> bool {
    (1..=MAX_ALIAS_BYTES).contains(&name.len()) && name.bytes().all(is_alias_byte)
}

fn is_alias_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Returns the alias of a tool: a plain name itself, or else a readable part of the name and a hash.
fn alias(name: &str, plain_names: &[String]) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    let hash = Digest::of_bytes(name.as_bytes());
    let readable: String = name
        .bytes()
        .map(|byte| if is_alias_byte(byte) { char::from(byte) } else { '_' })
        .take(MAX_ALIAS_BYTES - LONG_HASH_DIGITS - 1)
        .collect();
    let with_hash = |digits: usize| format!("{readable}-{}", hash.short(digits));
    let short = with_hash(SHORT_HASH_DIGITS);
    if plain_names.contains(&short) { with_hash(LONG_HASH_DIGITS) } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::json;

    fn listed(name: &str, hint: Option<bool>) -> ListedTool {
        ListedTool {
            name: name.into(),
            input_schema: json!({"type": "object"}),
            annotations: hint.map(|hint| ("readOnlyHint".to_owned(), json!(hint))).into_iter().collect(),
            ..ListedTool::default()
        }
    }

    fn server_tools(tools: Vec<CatalogueTool>) -> Vec<CatalogueTool> {
        tools.into_iter().filter(|tool| tool.source == ToolSource::Server).collect()
    }

    #[test]
    fn a_server_tool_with_a_reserved_name_is_left_out() {
        let tools = fix(&fixture::run(), vec![listed("focus_read", None), listed("ask_user", None)]);
        assert_eq!(server_tools(tools), []);
    }

    #[test]
    fn the_skill_s_description_is_used_if_the_server_has_none() {
        let mut run = fixture::run();
        run.skill.tools[0].description = Some("Finds out who asks".into());
        let tools = fix(&run, vec![listed("verify_identity", None)]);
        assert_eq!(tools[0].description, "Finds out who asks");
        run.skill.tools[0].output = Some(serde_json::from_value(json!({"description": "The customer"})).unwrap());
        let tools = fix(&run, vec![listed("verify_identity", None)]);
        assert_eq!(tools[0].description, "Finds out who asks\nReturns: The customer");
    }

    #[test]
    fn the_skill_s_description_of_an_input_is_used_if_the_server_has_none() {
        let mut run = fixture::run();
        let inputs = json!([
            {"name": "order", "type": "string", "description": "Such as A-17"},
            {"name": "state", "type": "string", "description": "Ours"},
            {"name": "other", "type": "string", "description": "Not listed"},
        ]);
        run.skill.tools[0].inputs = serde_json::from_value(inputs).unwrap();
        let mut tool = listed("verify_identity", None);
        let schema = |order| json!({"properties": {"order": order, "state": {"description": "Theirs"}}});
        tool.input_schema = schema(json!({"type": "string"}));
        let digest = tool.digest();
        let tools = fix(&run, vec![tool]);
        assert_eq!(tools[0].input_schema, schema(json!({"type": "string", "description": "Such as A-17"})));
        assert_eq!(tools[0].digest, digest, "a description of the Skill is no drift of the server");
    }

    #[test]
    fn only_the_skill_makes_a_tool_read_only_and_a_hint_of_the_server_can_revoke_it() {
        let tools = fix(
            &fixture::run(),
            vec![
                listed("verify_identity", None),
                listed("check_eligibility", Some(false)),
                listed("process_refund", Some(true)),
            ],
        );
        let tools = server_tools(tools);
        let read_only: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
        assert_eq!(read_only, [("verify_identity", true), ("check_eligibility", false), ("process_refund", false)]);
    }

    #[test]
    fn a_tool_whose_name_is_listed_twice_is_left_out() {
        let tools = server_tools(fix(&fixture::run(), vec![listed("a", None), listed("b", None), listed("a", None)]));
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn names_that_providers_refuse_get_distinct_aliases() {
        let long = "x".repeat(200);
        let tools = fix(
            &fixture::run(),
            vec![listed("a.b", None), listed("a/b", None), listed("a_b", None), listed(&long, None)],
        );
        let tools = server_tools(tools);
        let aliases: std::collections::BTreeSet<_> = tools.iter().map(|tool| tool.alias.clone()).collect();
        assert_eq!(aliases.len(), 4);
        assert!(aliases.iter().all(|alias| is_plain(alias)), "{aliases:?}");
        assert!(aliases.contains("a_b"));
    }
}
