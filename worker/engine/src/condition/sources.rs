//! Finds the uses of `fromUser` and `fromTool` on which the truth of a condition depends.

use super::Condition;
use bloomery_cel::{Macro, Node};

/// A use of `fromUser` or `fromTool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The argument, such as `recipient`, `recipients[]` or `address.city`. `None` if the value is not a part of an argument.
    pub(crate) value: Option<String>,
    /// Whether it asks for people. Otherwise, it asks for a tool.
    pub(crate) is_user: bool,
    /// Whether the condition can be true because the value does not come from there.
    pub(crate) is_negated: bool,
}

impl Condition {
    /// Returns the uses of `fromUser` and `fromTool`. A use whose direction is not known, such as in `fromUser(a) == b`, is left out.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let mut found = Vec::new();
        visit(self.program.root(), /*wanted*/ true, &mut Vec::new(), &mut |node, wanted, items| {
            let (value, is_user) = match node {
                Node::FromUser(value) => (value, true),
                Node::FromTool(value, _) => (value, false),
                _ => return,
            };
            found.push(Source { value: part_of_argument(value, items), is_user, is_negated: !wanted });
        });
        found
    }
}

/// Visits a part that must be `wanted` for the condition to be true, and all parts within it of which this is known. `items` are the values
/// of the enclosing macros, the outermost first. The visitor receives both for each part.
pub(super) fn visit(
    node: &Node,
    wanted: bool,
    items: &mut Vec<Option<String>>,
    visitor: &mut impl FnMut(&Node, bool, &[Option<String>]),
) {
    visitor(node, wanted, items);
    match node {
        Node::Not(operand) => visit(operand, !wanted, items, visitor),
        Node::And(sides) | Node::Or(sides) => {
            for side in sides {
                visit(side, wanted, items, visitor);
            }
        }
        Node::Conditional(parts) => {
            let [_, yes, no] = parts.as_ref();
            visit(yes, wanted, items, visitor);
            visit(no, wanted, items, visitor);
        }
        Node::Macro(Macro::All | Macro::Exists, over, body) => {
            let item = part_of_argument(over, items).map(|list| format!("{list}[]"));
            items.push(item);
            visit(body, wanted, items, visitor);
            items.pop();
        }
        _ => {}
    }
}

/// Returns the path of an argument, or of a part of it. `items` are the values of the enclosing macros, the outermost first.
pub(super) fn part_of_argument(node: &Node, items: &[Option<String>]) -> Option<String> {
    match node {
        Node::Argument(name) => Some(name.clone()),
        Node::Item(at) => items.get(*at)?.clone(),
        Node::Select(base, name) => Some(format!("{}.{name}", part_of_argument(base, items)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("fromUser(a)", &[(Some("a"), true, false)])]
    #[case::negated("!fromUser(a) && !fromTool(args.a, 't')", &[(Some("a"), true, true), (Some("a"), false, true)])]
    #[case::a_negated_group("!(fromUser(a) || fromTool(b.c, 't'))", &[(Some("a"), true, true), (Some("b.c"), false, true)])]
    #[case::a_double_negation("!(!fromUser(a))", &[(Some("a"), true, false)])]
    #[case::a_group_with_both("!(fromUser(a) && !fromUser(b))", &[(Some("a"), true, true), (Some("b"), true, false)])]
    #[case::items("!xs.all(x, fromUser(x)) || ys.exists(y, fromUser(y.z))", &[(Some("xs[]"), true, true), (Some("ys[].z"), true, false)])]
    #[case::of_results("results('t').exists(r, r.id == a && fromUser(r.name))", &[(None, true, false)])]
    #[case::a_text("fromUser('urgent')", &[(None, true, false)])]
    #[case::a_conditional("fromUser(a) ? !fromUser(b) : true", &[(Some("b"), true, true)])]
    #[case::of_no_known_direction("fromUser(a) == b && xs.exists_one(x, fromUser(x))", &[])]
    fn the_direction_of_a_source_is_known(#[case] text: &str, #[case] expected: &[(Option<&str>, bool, bool)]) {
        let sources = Condition::compile(text).unwrap().sources();
        let found: Vec<_> =
            sources.iter().map(|source| (source.value.as_deref(), source.is_user, source.is_negated)).collect();
        assert_eq!(found, expected);
    }
}
