//! Finds lists in the arguments of which one item lets a call pass, whatever the other items are. An attacker adds a recipient to a mail.

use super::Condition;
use super::sources::{part_of_argument, visit};
use bloomery_cel::{Function, Macro, Node, Operator};

/// A list in the arguments of which one item lets a call pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OneItem {
    /// The list, such as `recipients`.
    pub(crate) list: String,
    /// The macro over the list. None if the condition reads one item by its position.
    pub(crate) by: Option<Macro>,
}

impl Condition {
    /// Returns the lists of which the condition checks where values come from, so that one item lets a call pass, unless the condition also
    /// asks for the size of the list. `allows` says whether calls pass if the condition is true. Otherwise, they pass if it is false.
    pub(crate) fn passing_by_one_item(&self, allows: bool) -> Vec<OneItem> {
        let mut found = Vec::new();
        visit(self.program.root(), allows, &mut Vec::new(), &mut |node, passes, items| {
            found.extend(item_of_macro(node, passes, items));
        });
        let nodes = self.nodes();
        found.extend(nodes.iter().filter_map(|node| item_by_position(node)));
        let asks_for_size = |list: &str| nodes.iter().any(|node| is_size_of(node, list));
        found.retain(|found| !asks_for_size(&found.list));
        found
    }
}

/// Returns the list of a macro of which one item is enough for a call to pass. `passes` says whether calls pass if the macro is true.
/// `items` are the values of the enclosing macros, the outermost first.
fn item_of_macro(node: &Node, passes: bool, items: &[Option<String>]) -> Option<OneItem> {
    let Node::Macro(by @ (Macro::All | Macro::Exists), over, body) = node else { return None };
    let is_enough = passes == (*by == Macro::Exists);
    let checks_values = || body.parts().into_iter().any(|part| checked_value(part).is_some());
    let list = part_of_argument(over, items).filter(|_| is_enough && checks_values())?;
    Some(OneItem { list, by: Some(*by) })
}

/// Returns the value of which a part asks where it comes from, or whether it is a known one.
fn checked_value(node: &Node) -> Option<&Node> {
    match node {
        Node::FromUser(value) | Node::FromTool(value, _) => Some(&**value),
        Node::Call(Function::Host | Function::Domain, operands) => operands.first(),
        Node::Binary(Operator::In, value, list) if matches!(**list, Node::NamedList(_)) => Some(&**value),
        _ => None,
    }
}

/// Returns the list of an argument of which a part checks one item by its position: `fromUser(recipients[0])`.
fn item_by_position(node: &Node) -> Option<OneItem> {
    let Node::Index(list, position) = checked_value(node)? else { return None };
    let is_position = matches!(**position, Node::Int(_) | Node::Uint(_));
    Some(OneItem { list: part_of_argument(list, &[]).filter(|_| is_position)?, by: None })
}

fn is_size_of(node: &Node, list: &str) -> bool {
    let Node::Call(Function::Size, operands) = node else { return false };
    operands.iter().any(|operand| part_of_argument(operand, &[]).as_deref() == Some(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::none_of_people("!to.exists(t, fromUser(t))", false, &[("to", Some(Macro::Exists))])]
    #[case::all_of_strangers("to.all(t, !fromUser(t))", false, &[("to", Some(Macro::All))])]
    #[case::no_known_domain("!to.exists(t, domain(t) in lists.own)", false, &[("to", Some(Macro::Exists))])]
    #[case::one_of_people_to_allow("to.exists(t, fromTool(t, 'x'))", true, &[("to", Some(Macro::Exists))])]
    #[case::the_first("!fromUser(to[0])", false, &[("to", None)])]
    #[case::the_first_of_a_field("!(mail.to[0] in lists.own)", false, &[("mail.to", None)])]
    #[case::of_each_item("orders.exists(o, !o.to.exists(t, fromUser(t)))", false, &[("orders[].to", Some(Macro::Exists))])]
    #[case::each_of_people("!to.all(t, fromUser(t))", false, &[])]
    #[case::one_stranger("to.exists(t, !fromUser(t))", false, &[])]
    #[case::each_of_people_to_allow("to.all(t, fromUser(t))", true, &[])]
    #[case::with_the_size("size(to) != 1 || !fromUser(to[0])", false, &[])]
    #[case::of_results("!results('x').exists(r, r.id == id && fromUser(r.name))", false, &[])]
    #[case::a_label("!labels.exists(l, l == 'safe')", false, &[])]
    #[case::a_field_by_its_name("!fromUser(args['to'])", false, &[])]
    fn one_item_of_a_list_lets_calls_pass(
        #[case] text: &str,
        #[case] allows: bool,
        #[case] expected: &[(&str, Option<Macro>)],
    ) {
        let condition = Condition::compile(text).unwrap();
        let found = condition.passing_by_one_item(allows);
        let found: Vec<_> = found.iter().map(|found| (found.list.as_str(), found.by)).collect();
        assert_eq!(found, expected);
    }
}
