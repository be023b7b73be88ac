//! A manifest of one of our kinds, against what the API server would refuse.

use crate::draft::Draft;
use crate::finding::{Finding, Severity, any_error, in_order};
use crate::naming::Naming;
use crate::schema::patterns::{self, APPROVER};
use crate::schema::{self, did_you_mean, no_such_field, quoted};
use crate::tree::{Entry, Node, Place, Value};
use crate::yaml::Document;
use bloomery_crds::names::{GROUP, MAX_NAME};
use bloomery_crds::v1alpha1::{Skill, definitions, schema_of};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::{Value as Json, json};

/// The fields that every object of the API may have in its `metadata`.
const OF_METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A manifest of one of our kinds.
    Manifest,
    /// The dialect of the seeds.
    Dialect,
    /// An object of somebody else.
    Foreign,
}

/// What a document is: a manifest says its `apiVersion` or `kind`, the dialect says neither.
pub fn form(document: &Document) -> Form {
    let root = &document.root;
    let Some(version) = root.get("apiVersion") else {
        return if root.get("kind").is_some() { Form::Manifest } else { Form::Dialect };
    };
    match version.text().and_then(|version| version.split_once('/')) {
        Some((group, _)) if group != GROUP => Form::Foreign,
        None if version.text() == Some("v1") => Form::Foreign,
        _ => Form::Manifest,
    }
}

/// What came of checking a document.
#[derive(Debug)]
pub struct Checked {
    /// Its kind, as far as it is one of ours.
    pub kind: Option<String>,
    /// The tree in which a path of the API is to be looked up.
    pub root: Node,
    /// The object, without what was refused.
    pub object: Json,
    /// The Skill, where it is one without errors.
    pub skill: Option<Skill>,
    /// What can be read of the Skill, for findings only.
    pub draft: Option<Draft>,
    /// What was found, in the order of the file.
    pub findings: Vec<Finding>,
}

/// Checks a manifest of one of our kinds: all faults at once.
pub fn manifest(document: &Document) -> Checked {
    let root = &document.root;
    let mut findings = Vec::new();
    let kind = kind(root, &mut findings);
    let mut object = json!({});
    if let (Some((kind, schema)), Value::Map(entries)) = (&kind, &root.value) {
        object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind });
        top(root, entries, schema, &mut object, &mut findings);
    }
    let skill_spec = kind.as_ref().filter(|(kind, _)| kind == "Skill").and_then(|_| root.get("spec"));
    let draft = skill_spec.and_then(|spec| Draft::of(spec, &document.refused, &findings));
    in_order(&mut findings);
    let kind = kind.map(|(kind, _)| kind);
    let usable = !document.is_faulty() && !any_error(&findings) && kind.as_deref() == Some("Skill");
    let skill = if usable { typed(&object, &root.place, &mut findings) } else { None };
    Checked { kind, root: root.clone(), object, skill, draft, findings }
}

/// The Skill that a checked object is.
pub(crate) fn typed(object: &Json, place: &Place, findings: &mut Vec<Finding>) -> Option<Skill> {
    match serde_json::from_value(object.clone()) {
        Ok(skill) => Some(skill),
        Err(error) => {
            findings.push(Finding::error(place, format!("cannot be read as a Skill: {error}")));
            None
        }
    }
}

fn kind(root: &Node, findings: &mut Vec<Finding>) -> Option<(String, &'static JSONSchemaProps)> {
    if !matches!(root.value, Value::Map(_)) {
        findings.push(Finding::error(&root.place, format!("a manifest is an object, and this is {}", root.kind())));
        return None;
    }
    let wanted = format!("{GROUP}/v1alpha1");
    match root.get("apiVersion") {
        None => findings.push(
            Finding::error(&root.place.of_missing("apiVersion"), "is required, and is missing")
                .hint(format!("write apiVersion: {wanted}")),
        ),
        Some(version) if version.text() != Some(&wanted) => {
            let shown = version.text().map_or_else(|| version.kind().to_owned(), quoted);
            findings.push(Finding::error(&version.place, format!("must be {wanted}, and is {shown}")));
        }
        Some(_) => {}
    }
    let kinds: Vec<String> = definitions().iter().map(|definition| definition.spec.names.kind.clone()).collect();
    let known = kinds.join(", ");
    let Some(kind) = root.get("kind") else {
        let missing = Finding::error(&root.place.of_missing("kind"), "is required, and is missing");
        findings.push(missing.hint(format!("it is one of {known}")));
        return None;
    };
    let name = kind.text().unwrap_or_default();
    let schema = schema_of(name);
    if schema.is_none() {
        let near = did_you_mean(name, kinds.iter().map(String::as_str));
        findings.push(Finding::error(&kind.place, format!("must be one of {known}, and is {}{near}", quoted(name))));
    }
    Some((name.to_owned(), schema?))
}

fn top(root: &Node, entries: &[Entry], schema: &JSONSchemaProps, object: &mut Json, findings: &mut Vec<Finding>) {
    for entry in entries {
        match entry.name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                metadata(&entry.node, findings);
                put(object, "metadata", entry.node.json());
            }
            "status" => findings.push(
                Finding::warning(&entry.place, "is written by the operator, and not read from a manifest")
                    .hint("leave it out"),
            ),
            "spec" => {
                if let Some(spec) = schema.properties.as_ref().and_then(|properties| properties.get("spec")) {
                    put(object, "spec", schema::check(&entry.node, spec, Naming::Api, findings));
                }
            }
            _ => {
                findings.push(no_such_field(entry, ["apiVersion", "kind", "metadata", "spec", "status"]));
            }
        }
    }
    for required in ["metadata", "spec"].into_iter().filter(|required| root.get(required).is_none()) {
        findings.push(Finding::error(&root.place.of_missing(required), "is required, and is missing"));
    }
}

fn put(object: &mut Json, name: &str, value: Json) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

fn metadata(node: &Node, findings: &mut Vec<Finding>) {
    if let Value::Map(entries) = &node.value {
        let unknown = entries.iter().filter(|entry| !OF_METADATA.contains(&entry.name.as_str()));
        findings.extend(unknown.map(|entry| no_such_field(entry, OF_METADATA)));
    }
    let Some(name) = node.get("name") else {
        findings.push(Finding::error(&node.place.of_missing("name"), "is required, and is missing"));
        return;
    };
    let fault = match name.text() {
        Some(text) => name_fault(text),
        None => Some(format!("must be text, and is {}", name.kind())),
    };
    findings.extend(fault.map(|fault| Finding::at(&name.place, Severity::Error, fault)));
}

/// The longest name of an approver, in bytes.
const MAX_APPROVER: usize = 64;

/// Why a text is no name of an object of ours, as the end of a sentence (`it ...`); nothing where it is one.
pub fn name_fault(name: &str) -> Option<String> {
    fault(name, r"^[a-z]([-a-z0-9]*[a-z0-9])?$", MAX_NAME)
}

/// Why a text is no name of an approver, as the end of a sentence; nothing where it is one.
pub fn approver_fault(name: &str) -> Option<String> {
    fault(name, APPROVER, MAX_APPROVER)
}

fn fault(name: &str, pattern: &str, most: usize) -> Option<String> {
    if name.len() > most {
        return Some(format!("has {} characters, and at most {most} are taken", name.chars().count()));
    }
    let taken = patterns::takes(pattern, name) == Some(true);
    (!taken).then(|| format!("must be {}, and is {}", patterns::words(pattern), quoted(name)))
}
