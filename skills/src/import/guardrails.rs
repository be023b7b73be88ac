//! Guardrails as a list of sentences (seed 000), which their first word sorts.

use crate::finding::{Finding, quoted};
use crate::tree::{Entry, Node, Value};

/// Turns a list of sentences into the map of rules. A sentence that begins with neither word is reported, not guessed.
pub(super) fn sorted(list: &Node, rules: &[Node], findings: &mut Vec<Finding>) -> Value {
    let (mut never, mut always) = (Vec::new(), Vec::new());
    for rule in rules {
        let Some(text) = rule.text() else {
            findings.push(Finding::error(&rule.place, format!("must be text, and is {}", rule.kind())));
            continue;
        };
        match text.split_whitespace().next().map(str::to_lowercase).as_deref() {
            Some("never") => never.push(rule.clone()),
            Some("always") => always.push(rule.clone()),
            _ => findings.push(
                Finding::error(&rule.place, format!("begins with neither Never nor Always: {}", quoted(text)))
                    .hint("begin it with one of them, or write guardrails as a map with never and always"),
            ),
        }
    }
    let entries = [("never", never), ("always", always)].into_iter().filter(|(_, rules)| !rules.is_empty());
    let entry = |(name, rules): (&str, Vec<Node>)| Entry {
        name: name.to_owned(),
        place: list.place.clone(),
        node: Node { place: list.place.clone(), value: Value::List(rules) },
    };
    Value::Map(entries.map(entry).collect())
}
