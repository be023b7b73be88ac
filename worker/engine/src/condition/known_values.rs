//! Finds conditions that name what may pass: they ask where a value comes from, or hold all values of an argument but known ones.

use super::Condition;
use super::sources::{part_of_argument, visit};
use bloomery_cel::{Function, Node, Operator};
use std::collections::BTreeSet;

impl Condition {
    /// Returns whether the condition names what may pass. A threshold does not, such as `amount > 500`, nor does a condition about earlier
    /// calls or about an argument that a call may leave out. `allows` says whether calls pass if the condition is true. Otherwise, they pass
    /// if it is false.
    pub(crate) fn names_what_passes(&self, allows: bool) -> bool {
        if self.nodes().iter().any(|node| matches!(node, Node::FromUser(_) | Node::FromTool(..))) {
            return true;
        }
        let (mut compared, mut omissible) = (BTreeSet::new(), BTreeSet::new());
        visit(self.program.root(), !allows, &mut Vec::new(), &mut |node, holds, items| match node {
            Node::Has(base, name) if holds && matches!(**base, Node::Arguments) => {
                omissible.insert(name.clone());
            }
            _ if is_known_value(node, holds) => {
                let paths = node.parts().into_iter().filter_map(|part| part_of_argument(part, items));
                compared.extend(paths.filter_map(|path| path.split(['.', '[']).next().map(str::to_owned)));
            }
            _ => {}
        });
        !compared.is_subset(&omissible)
    }
}

/// Returns whether a part lets a call pass because a value is a known one. `holds` says whether the part holds the call if it is true.
fn is_known_value(node: &Node, holds: bool) -> bool {
    match node {
        Node::Binary(Operator::Unequal, ..) => holds,
        Node::Binary(Operator::Equal | Operator::In, ..)
        | Node::Call(Function::Contains | Function::StartsWith | Function::EndsWith, _)
        | Node::Matches(..) => !holds,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_source("has(args.to) && !fromUser(to)", false, true)]
    #[case::another_value("path != 'a.md'", false, true)]
    #[case::a_list("!(to in lists.own)", false, true)]
    #[case::each_item("!to.all(t, t.endsWith('@own.com'))", false, true)]
    #[case::a_pattern("!query.lowerAscii().matches('^select')", false, true)]
    #[case::a_known_result("!results('list').exists(r, r.id == id)", false, true)]
    #[case::a_missing_argument("!has(args.mode) || mode != 'test'", false, true)]
    #[case::to_allow("to == 'ada'", true, true)]
    #[case::a_threshold("!(amount <= 500)", false, false)]
    #[case::the_same_call("calls('pay').exists(it, it.to == to && it.amount == amount)", false, false)]
    #[case::a_count("calls('send').size() >= 3", false, false)]
    #[case::an_argument_that_may_be_missing("has(args.currency) && currency != 'EUR'", false, false)]
    #[case::a_forbidden_value("to in lists.bad", false, false)]
    #[case::a_flag("!test", false, false)]
    fn a_condition_may_name_what_passes(#[case] text: &str, #[case] allows: bool, #[case] expected: bool) {
        assert_eq!(Condition::compile(text).unwrap().names_what_passes(allows), expected);
    }
}
