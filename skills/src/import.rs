//! From the dialect of the seeds to a `Skill`.

mod guardrails;
mod mcp_server;
mod name;
mod problem;
mod rename;
mod seeds;

use crate::draft::Draft;
use crate::finding::{Finding, any_error, in_order};
use crate::manifest::typed;
use crate::naming::Naming;
use crate::schema;
use crate::tree::{Entry, Node, Value};
use crate::yaml::Document;
use bloomery_crds::names::GROUP;
use bloomery_crds::v1alpha1::{Skill, spec_schema_of};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use rename::renamed;
use serde_json::json;

/// What an import is told beside the document.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the Skill, instead of the document's `id`.
    pub name: Option<String>,
    /// The namespace to write into the manifest.
    pub namespace: Option<String>,
    /// The name of a Model, instead of the document's `engine.model`.
    pub model: Option<String>,
    /// What the Skill is for, instead of the document's `problem.statement`.
    pub problem: Option<String>,
    /// Whether a document without an `id` is only looked at: then that is no error.
    pub nameless: bool,
    /// Whether the Skill runs without a cluster: then the address of its MCP server is kept beside it, whatever it is,
    /// and a Skill that does not say what it is for does the work of its name (those of seed 000 say nothing).
    pub local: bool,
}

/// What came of an import.
#[derive(Debug)]
pub struct Imported {
    /// The Skill, where there was no error.
    pub skill: Option<Skill>,
    /// What can be read of the Skill, for findings only.
    pub draft: Option<Draft>,
    /// The address of the MCP server as the document has it; only of a Skill that runs without a cluster.
    pub mcp_address: Option<String>,
    /// The object as the API has it; its places are those of the dialect. A path of the API is looked up in it.
    pub root: Node,
    /// The same object in JSON, without what was refused.
    pub object: serde_json::Value,
    /// What was found, in the order of the file.
    pub findings: Vec<Finding>,
}

/// Reads a document of the dialect as a `Skill`: all faults at once.
pub fn import(document: &Document, options: &Options) -> Imported {
    let mut findings = Vec::new();
    let source = &document.root;
    let Value::Map(entries) = &source.value else {
        findings.push(Finding::error(&source.place, format!("a skill is an object, and this is {}", source.kind())));
        let (root, object) = (source.clone(), json!({}));
        return Imported { skill: None, draft: None, mcp_address: None, root, object, findings };
    };
    let (ids, fields): (Vec<Entry>, Vec<Entry>) = entries.iter().cloned().partition(|entry| entry.name == "id");
    let (mcp_address, fields) = if options.local { mcp_server::taken(fields) } else { (None, fields) };
    let nothing = JSONSchemaProps::default();
    let spec_schema = spec_schema_of("Skill").unwrap_or(&nothing);
    let dialect = Node { place: source.place.clone(), value: Value::Map(fields) };
    let mut spec = renamed(&dialect, spec_schema, options.namespace.as_deref(), &mut findings);
    seeds::models(&mut spec, options.model.as_deref(), &mut findings);
    if let Some(problem) = &options.problem {
        seeds::set_text(&mut spec, "problem", "statement", problem);
    } else if options.local && source.get("problem").is_none_or(|problem| problem.value == Value::Null) {
        seeds::set_text(&mut spec, "problem", "statement", &problem::example(source));
    }
    seeds::what_is_missing(source, &mut findings);
    let checked = schema::check(&spec, spec_schema, Naming::Seeds, &mut findings);
    problem::hint(source, &mut findings);
    let draft = Draft::of(&spec, &document.refused, &findings);
    // The name is no part of the spec: its faults come after what they cannot hide, and are told first.
    let mut of_name = Vec::new();
    let name = name::of_skill(source, ids.first(), options, &mut of_name);
    findings.splice(0..0, of_name);
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "Skill",
        "metadata": { "name": name.unwrap_or_default() },
        "spec": checked,
    });
    if let (Some(namespace), Some(metadata)) = (&options.namespace, object.get_mut("metadata")) {
        metadata["namespace"] = json!(namespace);
    }
    in_order(&mut findings);
    let usable = !document.is_faulty() && !any_error(&findings);
    let skill = if usable { typed(&object, &source.place, &mut findings) } else { None };
    let place = source.place.clone();
    let root = Entry { name: "spec".to_owned(), place: place.clone(), node: spec };
    Imported { skill, draft, mcp_address, root: Node { place, value: Value::Map(vec![root]) }, object, findings }
}
