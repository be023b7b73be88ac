//! The tools against which the lint checks the rules of a Skill.

use crate::condition::{Earlier, Fields, Kinds, Shape, Signature, of_output};
use crate::core_tools;
use crate::rules::features;
use crate::schema::{has_other_properties, property_names};
use crate::tool::{CatalogueTool, ListedTool};
use bloomery_crds::core_tools::possible;
use bloomery_crds::scripts;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A tool that an MCP server lists: the parts of its definition on which rules depend.
#[derive(Debug, Clone, Copy)]
pub struct ServerTool<'a> {
    /// The name.
    pub name: &'a str,
    /// The schema of the arguments.
    pub arguments: &'a Value,
    /// The schema of the structured output, if the server lists one.
    pub output: Option<&'a Value>,
}

impl<'a> From<&'a ListedTool> for ServerTool<'a> {
    fn from(tool: &'a ListedTool) -> Self {
        Self { name: &tool.name, arguments: &tool.input_schema, output: tool.output_schema.as_ref() }
    }
}

impl<'a> From<&'a CatalogueTool> for ServerTool<'a> {
    fn from(tool: &'a CatalogueTool) -> Self {
        Self { name: &tool.name, arguments: &tool.input_schema, output: tool.output_schema.as_ref() }
    }
}

/// The tools that are known, and what is known about their arguments and results.
#[derive(Debug)]
pub(super) struct KnownTools {
    tools: BTreeMap<String, Signature>,
    /// The results of the tools whose server lists the schema of their output.
    results: BTreeMap<String, Shape>,
    /// The names of all arguments, and of the fields within them. Without the server's list, those that the Skill declares.
    fields: BTreeSet<String>,
    /// Whether an argument of a server's tool may have fields that no schema lists.
    may_have_other_fields: bool,
    /// Whether these are all tools, because the server's list is known.
    is_complete: bool,
}

impl KnownTools {
    /// Returns the core tools, the scripts, and the tools in the server's list. Without a list, or if it is empty, returns those that the
    /// Skill declares instead. A server without tools has none that a rule could miss.
    pub(super) fn new<'t>(spec: &SkillSpec, listed: impl IntoIterator<Item = ServerTool<'t>>) -> Self {
        let (core, scripts) = (core_tools(spec), scripts::tools_of(spec));
        let of_scripts: Value = serde_json::from_str(scripts::INPUT_SCHEMA).unwrap_or_default();
        let mut schemas: BTreeMap<&str, &Value> = core.iter().map(|(name, schema)| (name.as_str(), schema)).collect();
        let mut results = BTreeMap::new();
        let (mut is_complete, mut may_have_other_fields) = (false, false);
        let listed = listed.into_iter().filter(|tool| !core_tools::is_reserved(tool.name));
        for ServerTool { name, arguments, output } in listed {
            schemas.insert(name, arguments);
            is_complete = true;
            may_have_other_fields |= may_have_fields(arguments);
            results.extend(output.map(|output| (name.to_owned(), result(spec, name, output))));
        }
        // A script wins over a tool of the server.
        for name in scripts.keys() {
            schemas.insert(name, &of_scripts);
            results.remove(name);
            may_have_other_fields |= may_have_fields(&of_scripts);
        }
        is_complete &= !scripts::has_unread(spec);
        let signature =
            |(name, schema): (&&str, &&Value)| ((*name).to_owned(), Signature::listed(spec.inputs_of(name), schema));
        let mut tools: BTreeMap<String, Signature> = schemas.iter().map(signature).collect();
        let fields: BTreeSet<String> = if is_complete {
            let listed = schemas.values().flat_map(|schema| property_names(schema));
            listed.chain(tools.values().flat_map(Signature::names)).map(str::to_owned).collect()
        } else {
            let declared = spec.tools.iter().filter(|tool| !tool.name.ends_with('*'));
            for tool in declared {
                tools.entry(tool.name.clone()).or_insert_with(|| Signature::declared(spec.inputs_of(&tool.name)));
            }
            spec.tools.iter().flat_map(|tool| &tool.inputs).map(|input| input.name.clone()).collect()
        };
        Self { tools, results, fields, may_have_other_fields, is_complete }
    }

    /// Returns whether these are all tools that a Job can have.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the names of the tools.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.tools.keys().map(String::as_str).collect()
    }

    /// Returns the names of all arguments, and of the fields within them. Without the server's list, those that the Skill declares.
    pub(super) fn fields(&self) -> &BTreeSet<String> {
        &self.fields
    }

    /// Returns whether an argument of a server's tool may have fields that no schema lists.
    pub(super) fn may_have_other_fields(&self) -> bool {
        self.may_have_other_fields
    }

    /// Returns what is known about the arguments of the earlier calls, or about the results, of the tools whose name a pattern matches.
    pub(super) fn earlier(&self, earlier: Earlier, pattern: &str) -> Shape {
        let anything = || Shape::of_kinds(Kinds::ANY);
        let tools = self.matching(pattern);
        match earlier {
            Earlier::Calls => {
                let arguments = tools.map(|(_, signature)| signature.fields().clone());
                Shape::object(arguments.reduce(Fields::or).unwrap_or_default())
            }
            Earlier::Results => {
                let results = tools.map(|(name, _)| self.results.get(name).cloned().unwrap_or_else(anything));
                results.reduce(Shape::or).unwrap_or_else(anything)
            }
        }
    }

    /// Returns the tools whose name a pattern matches.
    pub(super) fn matching<'a>(&'a self, pattern: &str) -> impl Iterator<Item = (&'a str, &'a Signature)> {
        let tools = self.tools.iter().filter(move |(name, _)| matches(pattern, name));
        tools.map(|(name, signature)| (name.as_str(), signature))
    }
}

/// Returns what is known about the results of a tool whose server lists the schema of its output.
fn result(spec: &SkillSpec, tool: &str, output: &Value) -> Shape {
    let declared = spec.declaration_of(tool).and_then(|declared| declared.output.as_ref());
    of_output(output, declared.map_or(&[], |declared| &declared.fields), !spec.allows_unmatched())
}

/// Returns the core tools that a Job of the Skill can have, each with the schema of its arguments. A rule about another one would protect
/// nothing, and its author may mean a tool of the server with a similar name.
fn core_tools(spec: &SkillSpec) -> Vec<(String, Value)> {
    let possible = possible(spec);
    // The prompt may show all features completely.
    let can_have = |name: &str| {
        possible.contains(&name) && (name != core_tools::APPLY_FEATURE || !features::read_on_demand(spec).is_empty())
    };
    core_tools::definitions(can_have).map(|tool| (tool.name, tool.input_schema)).collect()
}

/// Returns whether an argument in a schema may have fields that the schema does not list. Further arguments do not count: a rule needs an
/// argument that the schema or the Skill names.
fn may_have_fields(schema: &Value) -> bool {
    let of_parts = match choice(schema) {
        Some(parts) => parts.iter().any(may_have_fields),
        None => has_other_properties(schema),
    };
    let mut properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    of_parts || properties.any(accepts_unlisted)
}

/// Returns the schemas of which a value matches one.
fn choice(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array())
}

/// Returns whether a value of a schema may have properties, at any depth, that the schema does not list.
fn accepts_unlisted(schema: &Value) -> bool {
    if let Some(parts) = choice(schema) {
        return parts.iter().any(accepts_unlisted);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let accepts_more = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
            let is_listed = |properties: &Map<String, Value>| !properties.values().any(accepts_unlisted);
            accepts_more || has_other_properties(schema) || !properties.is_some_and(is_listed)
        }
        Some("array") => schema.get("items").is_none_or(accepts_unlisted),
        Some(_) => false,
        None => schema.get("enum").or_else(|| schema.get("const")).is_none(),
    }
}
