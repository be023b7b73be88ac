//! Converts a directory with a `skill.json`.

use super::catalogue::{Catalogue, DOCS, Format};
use super::cycles::Subskill;
use super::directory::{self, FileFindings, ReadFault, SkillDirectory};
use super::features::extensions;
use super::json;
use super::limits;
use super::options::RepositoryOptions;
use super::parts::{self, ConvertedSkill, Parts, trimmed_document};
use super::script_files;
use crate::document::Document;
use crate::finding::Finding;
use crate::import::{Identity, finish, rename_fields};
use crate::schema::spec::{Schema, spec_schema_of};
use crate::tree::{Entry, Node, Place, Value};
use crate::yaml;
use bloomery_crds::text::bounded;
use std::collections::BTreeSet;

/// The fields of a `skill.json`. All of them are required.
const FIELDS: [&str; 3] = ["goal", "acceptance_criteria", "features"];

/// Converts the skill at a path of the repository.
pub(super) fn convert(
    path: &str,
    directory: &impl SkillDirectory,
    catalogue: &Catalogue,
    options: &RepositoryOptions,
) -> ConvertedSkill {
    let mut converted = ConvertedSkill::new();
    let document = match read(directory) {
        Ok((document, findings)) => {
            converted.checked.findings = findings;
            document
        }
        Err(findings) => {
            converted.checked.findings = findings;
            return converted;
        }
    };
    let Value::Map(entries) = &document.root.value else {
        converted.checked.findings.push(document.error(format!("must be an object, and is {}", document.root.kind())));
        return converted;
    };
    let findings = &mut converted.checked.findings;
    let known = known_fields(&document.root, entries, findings);
    let empty_schema = Schema::default();
    let mut spec = rename_fields(&known, spec_schema_of("Skill").unwrap_or(&empty_schema), None, findings);
    let name = catalogue.name(path).map(str::to_owned);
    add_problem(&mut spec, name.as_deref().unwrap_or(path));
    converted.subskills = resolve_subskills(&mut spec, path, catalogue, findings);
    let parts = Parts {
        docs: read_docs(directory, &mut converted.others),
        scripts: script_files::take(&mut spec, directory, options, &mut converted),
    };
    add_skills(&mut spec, &converted.subskills);
    parts::add(&mut spec, parts, options);
    let identity = Identity { name, namespace: options.namespace.clone(), ..Identity::default() };
    converted.checked = finish(converted.checked, &document, spec, identity);
    converted
}

/// Reads the `skill.json`.
fn read(directory: &impl SkillDirectory) -> Result<(Document, Vec<Finding>), Vec<Finding>> {
    let bytes = directory.read(Format::SkillJson.file(), yaml::MAX_BYTES).map_err(|fault| {
        let message = match fault {
            ReadFault::TooLarge => format!("is larger than {} bytes, the largest size", yaml::MAX_BYTES),
            ReadFault::Other(message) => message,
        };
        vec![Finding::of_file(message)]
    })?;
    json::read(&bytes)
}

/// Returns the known fields, and reports unknown and missing ones.
fn known_fields(root: &Node, entries: &[Entry], findings: &mut Vec<Finding>) -> Node {
    let (known, unknown): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| FIELDS.contains(&entry.name.as_str()));
    findings.extend(unknown.into_iter().map(|entry| Finding::unknown_field(entry, FIELDS)));
    for field in FIELDS {
        match entries.iter().find(|entry| entry.name == field) {
            None => findings.push(Finding::missing_field(&root.place.of_field(field))),
            Some(entry) if entry.node.value == Value::Null => findings.push(Finding::empty_field(&entry.place)),
            Some(_) => {}
        }
    }
    Node { place: root.place.clone(), value: Value::Map(known.into_iter().cloned().collect()) }
}

/// Adds the problem statement, which is the goal. A goal with a fault has a finding of its own.
fn add_problem(spec: &mut Node, name: &str) {
    let goal = spec.get("goal");
    let place = goal.map_or_else(|| spec.place.clone(), |goal| goal.place.clone());
    let text = goal.and_then(Node::text).filter(|goal| !goal.is_empty()).unwrap_or(name);
    let statement = Value::text(bounded(text, limits::max_chars(&["problem", "statement"])));
    let problem = parts::map("problem", &place, [("statement", statement)]);
    if let Value::Map(fields) = &mut spec.value {
        fields.insert(0, problem);
    }
}

/// Replaces the names of subskills by those of their Skills, and returns them.
fn resolve_subskills(spec: &mut Node, path: &str, catalogue: &Catalogue, findings: &mut Vec<Finding>) -> Vec<Subskill> {
    let mut subskills = Vec::new();
    for node in extensions(spec).filter_map(|extension| extension.get_mut("subskill")) {
        let Some(named) = node.text() else { continue };
        match catalogue.resolve(path, named) {
            Ok(skill) => {
                let Place { line, column, path } = &node.place;
                let subskill =
                    Subskill { skill: skill.to_owned(), line: *line, column: *column, path: path.to_string() };
                node.value = Value::text(skill);
                subskills.push(subskill);
            }
            Err(fault) => {
                findings.push(Finding::error(&node.place, fault));
                // The schema would report the same text again.
                node.value = Value::Null;
            }
        }
    }
    subskills
}

/// Adds the Skills that the features name to those that the Skill may invoke.
fn add_skills(spec: &mut Node, subskills: &[Subskill]) {
    let place = spec.place.of_field("features");
    let names: BTreeSet<&str> = subskills.iter().map(|subskill| subskill.skill.as_str()).collect();
    let nodes = names.into_iter().map(|name| Node { place: place.clone(), value: Value::text(name) });
    if let Value::Map(fields) = &mut spec.value
        && !subskills.is_empty()
    {
        fields.push(Entry::at("skills", &place, Value::List(nodes.collect())));
    }
}

fn read_docs(directory: &impl SkillDirectory, others: &mut FileFindings) -> Option<String> {
    if !directory::has_file(directory, DOCS) {
        return None;
    }
    match directory::read_text(directory, DOCS, limits::max_chars(&["docs"])) {
        Ok(text) => trimmed_document(&text),
        Err(fault) => {
            directory::add(others, DOCS, fault.error());
            None
        }
    }
}
