//! The name of an imported object.

use super::Options;
use crate::finding::Finding;
use crate::manifest::name_fault;
use crate::schema::quoted;
use crate::tree::{Entry, Node};

/// The Skill's name: the one that was asked for, else the document's `id`, as an object can bear it.
pub(super) fn of_skill(
    source: &Node,
    id: Option<&Entry>,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    // A name from the command line is checked by whoever took it from there.
    if let Some(name) = &options.name {
        return Some(name.clone());
    }
    let Some(id) = id else {
        let place = source.place.of_missing("id");
        if options.nameless {
            findings.push(
                Finding::warning(&place, "is missing: the Skill has no name")
                    .hint("`bloomery import` needs one: add an id, or give --name"),
            );
        } else {
            findings
                .push(Finding::error(&place, "is missing: the Skill needs a name").hint("add an id, or give --name"));
        }
        return None;
    };
    let Some(text) = id.node.text() else {
        findings.push(Finding::error(&id.node.place, format!("must be text, and is {}", id.node.kind())));
        return None;
    };
    let label = label(text);
    if let Some(fault) = name_fault(&label) {
        let message = format!("cannot become the name of an object: {} {fault}", quoted(text));
        findings.push(Finding::error(&id.node.place, message).hint("give --name"));
        return None;
    }
    if label != text {
        findings.push(Finding::warning(
            &id.node.place,
            format!("is written as {label:?}: {} is no name of an object", quoted(text)),
        ));
    }
    Some(label)
}

/// A text with what no label has turned into dashes. It may still not be one: nothing is added or cut off.
pub(super) fn label(text: &str) -> String {
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
    use super::label;
    use rstest::rstest;

    #[rstest]
    #[case("cs-tier-1", "cs-tier-1")]
    #[case("CS:Tier-1", "cs-tier-1")]
    #[case(" SW Dev: Senior ", "sw-dev-senior")]
    #[case("sw_dev__agent", "sw-dev-agent")]
    #[case("1st", "1st")]
    #[case("客服", "")]
    fn labels(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(label(text), expected);
    }
}
