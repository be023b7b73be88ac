//! Converts the older dialect to a `Skill`.

mod dialect;
mod guardrails;
mod mcp_server;
mod name;
mod problem_statement;
mod rename;

use crate::checked::CheckedDocument;
use crate::document::Document;
use crate::draft::Draft;
use crate::finding::Finding;
use crate::naming::Naming;
use crate::schema;
use crate::tree::{Entry, Node, Value};
use bloomery_crds::names::GROUP;
use bloomery_crds::v1alpha1::spec_schema_of;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use rename::rename_fields;
use serde_json::{Value as Json, json};

/// The settings of [`import`].
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The name of the Skill, instead of the document's `id`. It must be a valid name.
    pub name: Option<String>,
    /// The namespace to write into the manifest.
    pub namespace: Option<String>,
    /// The name of a Model, instead of the document's `engine.model`.
    pub model: Option<String>,
    /// The purpose of the Skill, instead of the document's `problem.statement`.
    pub problem: Option<String>,
    /// True if a document without an `id` causes a warning instead of an error.
    pub allow_missing_id: bool,
    /// True if the Skill runs without a cluster. The address of its MCP server is then returned in
    /// [`CheckedDocument::mcp_address`], and a missing problem statement is derived from the name.
    pub local: bool,
}

/// Converts a document of the dialect to a `Skill`. All faults are reported at once.
pub fn import(document: &Document, options: &ImportOptions) -> CheckedDocument {
    let kind = Some("Skill".to_owned());
    let source = &document.root;
    let mut findings = Vec::new();
    let Value::Map(entries) = &source.value else {
        findings.push(Finding::error(&source.place, format!("a skill is an object, and this is {}", source.kind())));
        let (root, object) = (source.clone(), json!({}));
        return CheckedDocument { kind, root, object, skill: None, draft: None, mcp_address: None, findings };
    };
    let (ids, fields): (Vec<Entry>, Vec<Entry>) = entries.iter().cloned().partition(|entry| entry.name == "id");
    let (mcp_address, fields) = if options.local { mcp_server::take_address(fields) } else { (None, fields) };
    let empty_schema = JSONSchemaProps::default();
    let spec_schema = spec_schema_of("Skill").unwrap_or(&empty_schema);
    let fields = Node { place: source.place.clone(), value: Value::Map(fields) };
    let mut spec = rename_fields(&fields, spec_schema, options.namespace.as_deref(), &mut findings);
    apply_options(&mut spec, source, options, &mut findings);
    let checked = schema::check(&spec, spec_schema, Naming::Dialect, &mut findings);
    problem_statement::add_hints(source, &mut findings);
    let draft = Draft::read(&spec, &document.refused, &findings);
    // An error of the name must not affect the draft, so the name is checked after the draft is read. Its findings are placed
    // first, because the sort keeps the order of findings at the same position.
    let mut name_findings = Vec::new();
    let name = match &options.name {
        Some(name) => Some(name.clone()),
        None => name::from_id(source, ids.first(), options.allow_missing_id, &mut name_findings),
    };
    findings.splice(0..0, name_findings);
    let object = skill_object(name, options.namespace.as_deref(), &checked);
    let place = source.place.clone();
    let spec = Entry { name: "spec".to_owned(), place: place.clone(), node: spec };
    let root = Node { place, value: Value::Map(vec![spec]) };
    CheckedDocument { kind, root, object, skill: None, draft, mcp_address, findings }.sort_and_read_skill(document)
}

/// Writes the values of the options into a spec, renames its models, and reports recommended fields that the document lacks.
fn apply_options(spec: &mut Node, source: &Node, options: &ImportOptions, findings: &mut Vec<Finding>) {
    dialect::rename_models(spec, options.model.as_deref(), findings);
    if let Some(problem) = &options.problem {
        dialect::set_text(spec, "problem", "statement", problem);
    } else if options.local && source.get("problem").is_none_or(|problem| problem.value == Value::Null) {
        dialect::set_text(spec, "problem", "statement", &problem_statement::example(source));
    }
    dialect::report_missing(source, findings);
}

fn skill_object(name: Option<String>, namespace: Option<&str>, spec: &Json) -> Json {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "Skill",
        "metadata": { "name": name.unwrap_or_default() },
        "spec": spec,
    });
    if let (Some(namespace), Some(metadata)) = (namespace, object.get_mut("metadata")) {
        metadata["namespace"] = json!(namespace);
    }
    object
}
