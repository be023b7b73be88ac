//! Finds conditions that ask whether an argument is missing that every call has.

use super::Condition;
use super::signature::Signature;
use bloomery_cel::Node;
use std::collections::BTreeSet;

/// The uses of `!has()` with arguments that every call has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NeverMissing<'a> {
    /// The arguments.
    pub(crate) arguments: BTreeSet<&'a str>,
    /// Whether the condition is never true because of them.
    pub(crate) is_never_true: bool,
}

impl Condition {
    /// Returns the arguments of which the condition asks with `!has()` whether they are missing, although all of these tools require them.
    pub(crate) fn never_missing(&self, tools: &[&Signature]) -> NeverMissing<'_> {
        let is_required = |name: &str| !tools.is_empty() && tools.iter().all(|tool| tool.requires(name));
        let asked = self.nodes().into_iter().filter_map(missing_argument);
        NeverMissing {
            arguments: asked.filter(|name| is_required(name)).collect(),
            is_never_true: is_never_true(self.program.root(), &is_required),
        }
    }
}

/// Returns the argument of `!has(args.name)`.
fn missing_argument(node: &Node) -> Option<&str> {
    let Node::Not(operand) = node else { return None };
    let Node::Has(base, name) = &**operand else { return None };
    matches!(**base, Node::Arguments).then_some(name.as_str())
}

/// Returns whether a part is never true, because it asks whether a required argument is missing.
fn is_never_true(node: &Node, is_required: &dyn Fn(&str) -> bool) -> bool {
    match node {
        Node::And(sides) => sides.iter().any(|side| is_never_true(side, is_required)),
        Node::Or(sides) => sides.iter().all(|side| is_never_true(side, is_required)),
        _ => missing_argument(node).is_some_and(is_required),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::alone("!has(args.to)", &["to"], true)]
    #[case::with_another_side("!has(args.to) && amount > 5", &["to"], true)]
    #[case::one_of_two_reasons("!has(args.to) || amount > 5", &["to"], false)]
    #[case::both_sides("!has(args.to) && cc || !has(args.to)", &["to"], true)]
    #[case::an_optional_argument("!has(args.cc)", &[], false)]
    #[case::null_is_missing("!has(args.note)", &[], false)]
    #[case::a_field("!has(args.to.name)", &[], false)]
    #[case::that_it_exists("has(args.to) && amount > 5", &[], false)]
    fn a_required_argument_is_never_missing(
        #[case] text: &str,
        #[case] arguments: &[&str],
        #[case] is_never_true: bool,
    ) {
        let schema = json!({"type": "object", "required": ["to", "note"], "properties": {
            "to": {"type": "string"}, "cc": {"type": "boolean"}, "note": {"type": ["string", "null"]}, "amount": {"type": "number"},
        }});
        let signature = Signature::listed(&[], &schema);
        let condition = Condition::compile(text).unwrap();
        let expected = NeverMissing { arguments: arguments.iter().copied().collect(), is_never_true };
        assert_eq!(condition.never_missing(&[&signature, &signature]), expected);
        let nothing = NeverMissing { arguments: BTreeSet::new(), is_never_true: false };
        assert_eq!(condition.never_missing(&[&signature, &Signature::default()]), nothing);
    }
}
