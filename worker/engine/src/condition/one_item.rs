//! Finds lists in the arguments of which one item lets a call pass, whatever the other items are. An attacker adds a recipient to a mail.

use super::Condition;
use super::sources::{part_of_argument, visit};
use bloomery_cel::{Function, Macro, Node, Operator};

/// A list in the arguments of which one item lets a call pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OneItem {
    /// The list, such as `recipients`.
    pub(crate) list: String,
    /// The macro over the list. None if the condition reads one item by its position, or asks whether one text is in the list.
    pub(crate) by: Option<Macro>,
}

impl Condition {
    /// Returns the lists of which the condition checks where values come from, so that one item lets a call pass, unless the condition also
    /// asks for the size of the list. `allows` says whether calls pass if the condition is true. Otherwise, they pass if it is false.
    pub(crate) fn passing_by_one_item(&self, allows: bool) -> Vec<OneItem> {
        let mut found = Vec::new();
        visit(self.program.root(), allows, &mut Vec::new(), &mut |node, passes, items| {
            let of_list = item_of_macro(node, passes, items).or_else(|| item_of_filter(node, passes, items));
            found.extend(of_list.or_else(|| item_by_text(node, passes, items)));
        });
        let nodes = self.nodes();
        found.extend(nodes.iter().filter_map(|node| item_by_position(node)));
        let asks_for_size = |list: &str| nodes.iter().any(|node| is_size_of(node, list));
        found.retain(|found| !asks_for_size(&found.list));
        found
    }
}

/// Returns the list of a macro of which one item is enough for a call to pass. With `exists_one`, it is a second item. `passes` says whether
/// calls pass if the macro is true. `items` are the values of the enclosing macros, the outermost first.
fn item_of_macro(node: &Node, passes: bool, items: &[Option<String>]) -> Option<OneItem> {
    let Node::Macro(by @ (Macro::All | Macro::Exists | Macro::ExistsOne), over, body) = node else { return None };
    let is_enough = *by == Macro::ExistsOne || passes == (*by == Macro::Exists);
    let list = part_of_argument(over, items).filter(|_| is_enough && checks_items(body))?;
    Some(OneItem { list, by: Some(*by) })
}

/// Returns the list of a comparison such as `size(to.filter(t, fromUser(t))) == 0`, if one item is enough for a call to pass.
fn item_of_filter(node: &Node, passes: bool, items: &[Option<String>]) -> Option<OneItem> {
    let Node::Binary(operator, left, right) = node else { return None };
    let Node::Call(Function::Size, operands) = &**left else { return None };
    let Some(Node::Macro(Macro::Filter, over, body)) = operands.first() else { return None };
    let is_any = match (operator, &**right) {
        (Operator::Equal | Operator::LessOrEqual, Node::Int(0)) | (Operator::Less, Node::Int(1)) => false,
        (Operator::Unequal | Operator::Greater, Node::Int(0)) | (Operator::GreaterOrEqual, Node::Int(1)) => true,
        _ => return None,
    };
    let list = part_of_argument(over, items).filter(|_| passes == is_any && checks_items(body))?;
    Some(OneItem { list, by: Some(Macro::Filter) })
}

/// Returns the list that lets a call pass if an address is in it: `!('a@own.com' in to)`.
fn item_by_text(node: &Node, passes: bool, items: &[Option<String>]) -> Option<OneItem> {
    let Node::Binary(Operator::In, text, list) = node else { return None };
    let is_address = matches!(&**text, Node::Text(text) if reads_as_address(text));
    Some(OneItem { list: part_of_argument(list, items).filter(|_| passes && is_address)?, by: None })
}

/// Returns whether the body of a macro asks where an item comes from, or whether it is a known one.
fn checks_items(body: &Node) -> bool {
    body.parts().into_iter().any(|part| checked_value(part).is_some() || compares_address(part))
}

/// Returns whether a part compares an item with an address. A list of labels may need one of them, whatever the others are.
fn compares_address(node: &Node) -> bool {
    let is_comparison = matches!(
        node,
        Node::Binary(Operator::Equal | Operator::In, ..)
            | Node::Call(Function::Contains | Function::StartsWith | Function::EndsWith, _)
            | Node::Matches(..)
    );
    let parts = node.parts();
    let has_address = || {
        parts.iter().any(|part| match part {
            Node::Text(text) => reads_as_address(text),
            Node::Matches(_, pattern) => reads_as_address(pattern.as_str()),
            _ => false,
        })
    };
    is_comparison && parts.iter().any(|part| matches!(part, Node::Item(_))) && has_address()
}

/// Returns whether a text is, or is a part of, the address of a mailbox, a host or a file.
fn reads_as_address(text: &str) -> bool {
    text.contains(['@', '.', '/'])
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
    #[case::no_known_end("!to.exists(t, t.endsWith('@own.com'))", false, &[("to", Some(Macro::Exists))])]
    #[case::no_known_address("!to.exists(t, t == 'a@own.com')", false, &[("to", Some(Macro::Exists))])]
    #[case::no_known_pattern("!to.exists(t, t.matches('@own[.]com$'))", false, &[("to", Some(Macro::Exists))])]
    #[case::a_known_address("!('a@own.com' in to)", false, &[("to", None)])]
    #[case::a_known_address_to_allow("'a@own.com' in to", true, &[("to", None)])]
    #[case::a_count("to.filter(t, fromUser(t)).size() == 0", false, &[("to", Some(Macro::Filter))])]
    #[case::a_count_to_allow("size(to.filter(t, fromUser(t))) > 0", true, &[("to", Some(Macro::Filter))])]
    #[case::one_stranger_of_several("to.exists_one(t, !fromUser(t))", false, &[("to", Some(Macro::ExistsOne))])]
    #[case::a_count_of_strangers("to.filter(t, !fromUser(t)).size() > 0", false, &[])]
    #[case::one_bad_address("to.exists(t, t.endsWith('@evil.com')) || 'b@evil.com' in to", false, &[])]
    #[case::each_known_end("!to.all(t, t.endsWith('@own.com'))", false, &[])]
    #[case::a_label_in_the_list("!('safe' in labels)", false, &[])]
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
