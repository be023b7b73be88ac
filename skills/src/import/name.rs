//! The name of an imported Skill.

use crate::finding::{Finding, quoted};
use crate::names::name_fault;
use crate::tree::{Entry, Node};

/// Derives the name of the Skill from the document's `id`. Without an `id`, takes the name of the file, and adds a warning.
pub(super) fn derive(
    source: &Node,
    id: Option<&Entry>,
    file: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    let Some(id) = id else { return from_file(source, file, findings) };
    let Some(text) = id.node.text() else {
        findings.push(Finding::error(&id.node.place, format!("must be text, and is {}", id.node.kind())));
        return None;
    };
    let label = to_label(text);
    if let Some(fault) = name_fault(&label) {
        let message = format!("cannot become the name of an object: {} {fault}", quoted(text));
        findings.push(Finding::error(&id.node.place, message).hint("give --name"));
        return None;
    }
    if label != text {
        findings.push(Finding::warning(
            &id.node.place,
            format!("becomes {label:?}, since {} is not a valid name of an object", quoted(text)),
        ));
    }
    Some(label)
}

/// Derives the name of a Skill without an `id` from the name of its file.
fn from_file(source: &Node, file: Option<&str>, findings: &mut Vec<Finding>) -> Option<String> {
    let (place, hint) = (source.place.of_field("id"), "add an id, or give --name");
    let label = file.map(|file| to_label(file).trim_start_matches(|c: char| !c.is_ascii_lowercase()).to_owned());
    let name = label.filter(|label| name_fault(label).is_none());
    let finding = match &name {
        Some(name) => Finding::warning(&place, format!("is missing: the Skill is named {name:?}, after its file")),
        None => Finding::error(&place, "is missing: the Skill needs a name"),
    };
    findings.push(finding.hint(hint));
    name
}

/// Converts a text to lower case, and replaces each run of characters that are not letters or digits with a dash. The result
/// can still be an invalid name, for example if it is too long.
pub(crate) fn to_label(text: &str) -> String {
    let mut label = String::new();
    for c in text.trim().chars() {
        if c.is_ascii_alphanumeric() {
            label.push(c.to_ascii_lowercase());
        } else if !label.ends_with('-') {
            label.push('-');
        }
    }
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::to_label;
    use rstest::rstest;

    #[rstest]
    #[case("cs-tier-1", "cs-tier-1")]
    #[case("CS:Tier-1", "cs-tier-1")]
    #[case(" SW Dev: Senior ", "sw-dev-senior")]
    #[case("sw_dev__agent", "sw-dev-agent")]
    #[case("1st", "1st")]
    #[case("客服", "")]
    fn a_text_becomes_lower_case_words_joined_by_dashes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(to_label(text), expected);
    }
}
