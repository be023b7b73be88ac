//! Hints for documents without a `problem.statement`.

use crate::finding::{Finding, FindingKind, quoted};
use crate::tree::Node;

/// Adds a hint to the finding about a missing problem statement: an example that uses the document's own words.
pub(super) fn add_hints(source: &Node, findings: &mut [Finding]) {
    for finding in findings.iter_mut().filter(|finding| finding.kind == FindingKind::MissingField) {
        let statement = format!("statement: {}", quoted(&example(source)));
        let written = match finding.path.as_str() {
            "problem" => format!("problem: {{{statement}}}"),
            "problem.statement" => statement,
            _ => continue,
        };
        let hint = format!(
            "describe the purpose of the Skill in a sentence, such as {written}, or pass --problem TEXT to `bloomery import`"
        );
        finding.hint.get_or_insert(hint);
    }
}

/// Derives a problem statement from the other fields of a document.
pub(super) fn example(source: &Node) -> String {
    let text_of = |name: &str| source.get(name)?.text().map(str::trim).filter(|text| !text.is_empty());
    match (text_of("description"), text_of("name").or(text_of("id"))) {
        (Some(description), _) => description.to_owned(),
        (None, Some(name)) => format!("Do the work of {name}"),
        (None, None) => "Help customers track orders and process refunds".to_owned(),
    }
}
