//! Guardrails of the dialect: a list of sentences that begin with Never or Always.

use crate::finding::{Finding, quoted};
use crate::tree::{Entry, Node, Value};

/// Converts a list of sentences to the map of rules. A sentence that begins with neither word is an error.
pub(super) fn to_map(list: &Node, rules: &[Node], findings: &mut Vec<Finding>) -> Value {
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
                Finding::error(&rule.place, format!("must begin with Never or Always, and is {}", quoted(text)))
                    .hint("rules of another form belong in a map: guardrails: {never: [...], always: [...]}"),
            ),
        }
    }
    let entries = [("never", never), ("always", always)].into_iter().filter(|(_, rules)| !rules.is_empty());
    let entry = |(name, rules): (&str, Vec<Node>)| Entry::at(name, &list.place, Value::List(rules));
    Value::Map(entries.map(entry).collect())
}
