//! Converts the older dialect to a `Skill`.

mod dialect;
mod guardrails;
mod mcp_server;
mod name;
mod problem_statement;
mod rename;
mod suggestions;

use crate::checked::CheckedDocument;
use crate::document::Document;
use crate::draft::Draft;
use crate::finding::Finding;
use crate::naming::Naming;
use crate::schema;
use crate::schema::spec::{Schema, spec_schema_of};
use crate::tree::{Entry, Node, Value};
use bloomery_crds::names::GROUP;
pub(crate) use mcp_server::unimported_warning;
use mcp_server::{ANNOTATION_UNIMPORTED, Unimported};
pub(crate) use name::to_label;
pub(crate) use rename::rename_fields;
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
    /// The name of the document's file without its extension. It names a Skill without an `id`.
    pub file: Option<String>,
    /// True if the Skill runs without a cluster. The address of its MCP server is then returned in
    /// [`CheckedDocument::mcp_address`].
    pub local: bool,
}

/// Converts a document of the dialect to a `Skill`. All faults are reported at once.
pub fn import(document: &Document, options: &ImportOptions) -> CheckedDocument {
    let source = &document.root;
    let mut checked = CheckedDocument::of_skill(source.clone());
    let Value::Map(entries) = &source.value else {
        let message = format!("a skill is an object, and this is {}", source.kind());
        checked.findings.push(Finding::error(&source.place, message));
        return checked;
    };
    let (ids, fields): (Vec<Entry>, Vec<Entry>) = entries.iter().cloned().partition(|entry| entry.name == "id");
    let mut identity = Identity { namespace: options.namespace.clone(), ..Identity::default() };
    let fields = if options.local {
        let (address, fields) = mcp_server::take_address(fields);
        checked.mcp_address = address;
        fields
    } else {
        if let Some(Unimported { reason, suggestion }) = mcp_server::unimported(source, options.namespace.as_deref()) {
            identity.unimported_server = Some(reason);
            checked.suggestions += &suggestion;
        }
        fields
    };
    identity.name = match &options.name {
        Some(name) => Some(name.clone()),
        None => name::derive(source, ids.first(), options.file.as_deref(), &mut identity.findings),
    };
    let empty_schema = Schema::default();
    let spec_schema = spec_schema_of("Skill").unwrap_or(&empty_schema);
    let fields = Node { place: source.place.clone(), value: Value::Map(fields) };
    let findings = &mut checked.findings;
    let mut spec = rename_fields(&fields, spec_schema, options.namespace.as_deref(), findings);
    let name = identity.name.clone();
    checked.suggestions += &complete(&mut spec, source, name.as_deref(), options, findings);
    let mut checked = finish(checked, document, spec, identity);
    problem_statement::add_hints(source, name.as_deref(), &mut checked.findings);
    checked
}

/// The metadata of a converted Skill.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// The name, if a valid one was found.
    pub(crate) name: Option<String>,
    /// The namespace.
    pub(crate) namespace: Option<String>,
    /// The reason why the MCP server of the document is not imported. None if it is imported, or the document has none.
    pub(crate) unimported_server: Option<String>,
    /// The findings about the name.
    pub(crate) findings: Vec<Finding>,
}

/// Checks a converted spec, which has the field names of the API and the places of the document, and reads the Skill.
pub(crate) fn finish(
    mut checked: CheckedDocument,
    document: &Document,
    spec: Node,
    identity: Identity,
) -> CheckedDocument {
    let empty_schema = Schema::default();
    let spec_schema = spec_schema_of("Skill").unwrap_or(&empty_schema);
    let findings = &mut checked.findings;
    let spec_object = schema::check(&spec, spec_schema, Naming::Dialect, findings);
    checked.draft = Draft::read(&spec, &document.refused, findings);
    // An error of the name must not affect the draft, so these findings are added after it is read. They are placed first,
    // because the sort keeps the order of findings at the same position.
    let Identity { name, namespace, unimported_server, findings: of_name } = identity;
    findings.splice(0..0, of_name);
    checked.object = skill_object(name, namespace, unimported_server, &spec_object);
    let place = document.root.place.clone();
    let spec = Entry { name: "spec".to_owned(), place: place.clone(), node: spec };
    checked.root = Node { place, value: Value::Map(vec![spec]) };
    checked.sort_and_read_skill(document)
}

/// Writes the values of the options, a missing problem statement and missing resources into a spec, renames its models, and
/// reports recommended fields that the document lacks. Returns suggestions.
fn complete(
    spec: &mut Node,
    source: &Node,
    name: Option<&str>,
    options: &ImportOptions,
    findings: &mut Vec<Finding>,
) -> String {
    let models = dialect::rename_models(spec, options.model.as_deref(), findings);
    let problem = options.problem.clone().or_else(|| problem_statement::derive(source, name, findings));
    if let Some(problem) = problem {
        dialect::set_text(spec, "problem", "statement", &problem);
    }
    dialect::declare_resources(spec, findings);
    dialect::report_missing(source, findings);
    models.iter().map(|(name, model)| suggestions::of_model(name, model, options.namespace.as_deref())).collect()
}

fn skill_object(
    name: Option<String>,
    namespace: Option<String>,
    unimported_server: Option<String>,
    spec: &Json,
) -> Json {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "Skill",
        "metadata": { "name": name.unwrap_or_default() },
        "spec": spec,
    });
    if let Some(metadata) = object.get_mut("metadata") {
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        if let Some(reason) = unimported_server {
            metadata["annotations"] = json!({ ANNOTATION_UNIMPORTED: reason });
        }
    }
    object
}
