//! Checks manifests of the kinds of Bloomery for faults that the API server would refuse.

use crate::checked::CheckedDocument;
use crate::document::Document;
use crate::draft::Draft;
use crate::finding::{Finding, did_you_mean, quoted};
use crate::import::unimported_warning;
use crate::names::name_fault;
use crate::naming::Naming;
use crate::schema;
use crate::schema::spec::{Schema, schema_of};
use crate::tree::{Entry, Node, Value};
use bloomery_crds::names::GROUP;
use bloomery_crds::v1alpha1::kinds;
use serde_json::{Value as Json, json};

/// The fields of `metadata`.
const METADATA_FIELDS: [&str; 15] = [
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

/// Checks a manifest of a kind of Bloomery. All faults are reported at once.
pub fn check_manifest(document: &Document) -> CheckedDocument {
    let root = &document.root;
    let mut findings = Vec::new();
    let kind = check_kind(root, &mut findings);
    let mut object = json!({});
    if let (Some((kind, schema)), Value::Map(entries)) = (&kind, &root.value) {
        object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind });
        check_top_level_fields(root, entries, schema, &mut object, &mut findings);
    }
    let skill_spec = kind.as_ref().filter(|(kind, _)| kind == "Skill").and_then(|_| root.get("spec"));
    let draft = skill_spec.and_then(|spec| Draft::read(spec, &document.refused, &findings));
    findings.extend(skill_spec.and_then(|spec| unimported_warning(root, spec)));
    let kind = kind.map(|(kind, _)| kind);
    let root = root.clone();
    let (mcp_address, suggestions) = (None, String::new());
    CheckedDocument { kind, root, object, skill: None, draft, mcp_address, suggestions, findings }
        .sort_and_read_skill(document)
}

/// Checks `apiVersion` and `kind`. Returns the kind with its schema, unless the kind is missing or unknown.
fn check_kind(root: &Node, findings: &mut Vec<Finding>) -> Option<(String, &'static Schema)> {
    if !matches!(root.value, Value::Map(_)) {
        findings.push(Finding::error(&root.place, format!("a manifest is an object, and this is {}", root.kind())));
        return None;
    }
    let expected_version = format!("{GROUP}/v1alpha1");
    match root.get("apiVersion") {
        None => findings.push(
            Finding::missing_field(&root.place.of_field("apiVersion"))
                .hint(format!("write apiVersion: {expected_version}")),
        ),
        Some(version) if version.text() != Some(&expected_version) => {
            let shown = version.text().map_or_else(|| version.kind().to_owned(), quoted);
            findings.push(Finding::error(&version.place, format!("must be {expected_version}, and is {shown}")));
        }
        Some(_) => {}
    }
    let kinds: Vec<&str> = kinds().collect();
    let known = kinds.join(", ");
    let Some(kind) = root.get("kind") else {
        let missing = Finding::missing_field(&root.place.of_field("kind"));
        findings.push(missing.hint(format!("it is one of {known}")));
        return None;
    };
    let name = kind.text().unwrap_or_default();
    let schema = schema_of(name);
    if schema.is_none() {
        let near = did_you_mean(name, kinds);
        findings.push(Finding::error(&kind.place, format!("must be one of {known}, and is {}{near}", quoted(name))));
    }
    Some((name.to_owned(), schema?))
}

/// Checks the top-level fields, and adds the checked ones to `object`.
fn check_top_level_fields(
    root: &Node,
    entries: &[Entry],
    schema: &Schema,
    object: &mut Json,
    findings: &mut Vec<Finding>,
) {
    for entry in entries {
        match entry.name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                check_metadata(&entry.node, findings);
                put(object, "metadata", entry.node.json());
            }
            "status" => findings.push(
                Finding::warning(&entry.place, "is written by the operator, and ignored in a manifest")
                    .hint("leave it out"),
            ),
            "spec" => {
                if let Some(spec) = schema.properties.as_ref().and_then(|properties| properties.get("spec")) {
                    put(object, "spec", schema::check(&entry.node, spec, Naming::Api, findings));
                }
            }
            _ => {
                findings.push(Finding::unknown_field(entry, ["apiVersion", "kind", "metadata", "spec", "status"]));
            }
        }
    }
    for required in ["metadata", "spec"].into_iter().filter(|required| root.get(required).is_none()) {
        findings.push(Finding::missing_field(&root.place.of_field(required)));
    }
}

fn put(object: &mut Json, name: &str, value: Json) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

fn check_metadata(node: &Node, findings: &mut Vec<Finding>) {
    if let Value::Map(entries) = &node.value {
        let unknown = entries.iter().filter(|entry| !METADATA_FIELDS.contains(&entry.name.as_str()));
        findings.extend(unknown.map(|entry| Finding::unknown_field(entry, METADATA_FIELDS)));
    }
    let Some(name) = node.get("name") else {
        findings.push(Finding::missing_field(&node.place.of_field("name")));
        return;
    };
    let fault = match name.text() {
        Some(text) => name_fault(text),
        None => Some(format!("must be text, and is {}", name.kind())),
    };
    findings.extend(fault.map(|fault| Finding::error(&name.place, fault)));
}
