//! What to do where a document does not say what its Skill is for: the Skills of seed 000 do not.

use crate::finding::{Finding, quoted};
use crate::tree::Node;

/// Adds to the finding of a missing problem what to write, in the document's own words where it has some.
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

/// What a Skill is for, as far as it can be told from what its document says else.
pub(super) fn example(source: &Node) -> String {
    let said = |name: &str| source.get(name)?.text().map(str::trim).filter(|text| !text.is_empty());
    match (said("description"), said("name").or(said("id"))) {
        (Some(description), _) => description.to_owned(),
        (None, Some(name)) => format!("Do the work of {name}"),
        (None, None) => "Help customers track orders and process refunds".to_owned(),
    }
}
