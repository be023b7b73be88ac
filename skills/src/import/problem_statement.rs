//! The problem statement of documents that have none.

use crate::finding::{Finding, FindingKind, quoted};
use crate::tree::{Node, Value};
use bloomery_crds::text::bounded;

/// The longest part of a persona that is used, in bytes.
const MAX_PERSONA_BYTES: usize = 200;

/// Derives the problem statement of a document without a `problem`, and adds a warning. Returns `None` if the document has one.
pub(super) fn derive(source: &Node, name: Option<&str>, findings: &mut Vec<Finding>) -> Option<String> {
    if source.get("problem").is_some_and(|problem| problem.value != Value::Null) {
        return None;
    }
    let statement = example(source, name);
    let message = format!("is missing: the Skill has the problem statement {statement:?}");
    let hint = "write the purpose of the Skill in a sentence, as problem: {statement: TEXT} or --problem TEXT. The agent and the \
                checks of its answers depend on it";
    findings.push(Finding::warning(&source.place.of_field("problem"), message).hint(hint));
    Some(statement)
}

/// Adds a hint to the finding about a `problem` without statement: an example that uses the document's own words.
pub(super) fn add_hints(source: &Node, name: Option<&str>, findings: &mut [Finding]) {
    let missing = |finding: &&mut Finding| {
        finding.kind == FindingKind::MissingField && matches!(finding.path.as_str(), "problem" | "problem.statement")
    };
    for finding in findings.iter_mut().filter(missing) {
        let hint = format!(
            "describe the purpose of the Skill in a sentence, such as statement: {}, or pass --problem TEXT to `bloomery import`",
            quoted(&example(source, name))
        );
        finding.hint.get_or_insert(hint);
    }
}

/// Derives a problem statement from the other fields of a document: its description, or its name and the first line of its
/// persona. `name` is the name of the Skill, for a document without a display name.
fn example(source: &Node, name: Option<&str>) -> String {
    if let Some(description) = text_of(source, "description") {
        return description.to_owned();
    }
    let work = format!("Do the work of {}", text_of(source, "name").or(name).unwrap_or("the Skill"));
    let persona =
        source.get("role").and_then(|role| text_of(role, "persona")).and_then(|persona| persona.lines().next());
    // The names of resources are replaced in the persona only.
    match persona.filter(|line| !line.contains("{{")) {
        Some(line) => format!("{work}. {}", bounded(line.trim(), MAX_PERSONA_BYTES)),
        None => work,
    }
}

fn text_of<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    node.get(name)?.text().map(str::trim).filter(|text| !text.is_empty())
}
