//! Hints for documents that do not state the problem of their Skill; those of seed 000 state none.

use crate::finding::{Finding, quoted};
use crate::tree::Node;

/// Adds a hint to the finding of a missing problem, in the document's own words where it has some.
pub(super) fn hint(source: &Node, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|finding| finding.message.starts_with("is required")) {
        let statement = format!("statement: {}", quoted(&example(source)));
        let written = match finding.path.as_str() {
            "problem" => format!("problem: {{{statement}}}"),
            "problem.statement" => statement,
            _ => continue,
        };
        let hint = format!(
            "say in a sentence what the Skill is for, such as {written}, or give it to `bloomery import`: --problem TEXT"
        );
        finding.hint.get_or_insert(hint);
    }
}

/// Makes a problem statement of the other fields of a document.
pub(super) fn example(source: &Node) -> String {
    let said = |name: &str| source.get(name)?.text().map(str::trim).filter(|text| !text.is_empty());
    match (said("description"), said("name").or(said("id"))) {
        (Some(description), _) => description.to_owned(),
        (None, Some(name)) => format!("Do the work of {name}"),
        (None, None) => "Help customers track orders and process refunds".to_owned(),
    }
}
