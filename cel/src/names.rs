//! The variables of an expression.

use crate::Program;
use crate::node::Node;
use std::collections::BTreeSet;

impl Program {
    /// Returns the variables that the expression names, bare or as a field of `args`.
    pub fn variables(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            match node {
                Node::Argument(name) => _ = names.insert(name.as_str()),
                // The parser turns every other use of a field of `args` into an `Argument`.
                Node::Has(operand, field) if matches!(**operand, Node::Arguments) => _ = names.insert(field.as_str()),
                Node::Select(one, _) | Node::Has(one, _) | Node::Not(one) | Node::Negate(one) => open.push(one),
                Node::Index(one, other) | Node::Binary(_, one, other) | Node::Macro(_, one, other) => {
                    open.extend([&**one, &**other]);
                }
                Node::Conditional(parts) => open.extend(parts.iter()),
                Node::List(items) | Node::Call(_, items) | Node::And(items) | Node::Or(items) => open.extend(items),
                Node::Null
                | Node::Bool(_)
                | Node::Int(_)
                | Node::Uint(_)
                | Node::Double(_)
                | Node::Text(_)
                | Node::Arguments
                | Node::Item(_) => {}
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_bare_name("amount > 500", &["amount"])]
    #[case::several("amount * 2 > limit && !(urgent)", &["amount", "limit", "urgent"])]
    #[case::of_args("has(args.amount) && args['a-b'] == 1 && args.c.d == 2", &["a-b", "amount", "c"])]
    #[case::in_a_macro("items.all(item, item.price < max_price)", &["items", "max_price"])]
    #[case::in_a_choice("express ? size(items) > 1 : false", &["express", "items"])]
    #[case::none("1 < 2", &[])]
    fn variables_are_found_at_any_depth(#[case] text: &str, #[case] names: &[&str]) {
        let condition = Program::parse(text).unwrap();
        assert_eq!(condition.variables().into_iter().collect::<Vec<_>>(), names);
    }
}
