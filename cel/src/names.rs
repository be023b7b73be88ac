//! The parts of an expression, and its variables.

use crate::Program;
use crate::node::{Node, Operator};
use std::collections::BTreeSet;

impl Program {
    /// Returns the variables that the expression names: bare, as a field of `args`, or in `'name' in args`.
    pub fn variables(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for node in self.nodes() {
            match node {
                Node::Argument(name) => _ = names.insert(name.as_str()),
                // The parser turns every other use of a field of `args` into an `Argument`.
                Node::Has(operand, field) if matches!(**operand, Node::Arguments) => _ = names.insert(field.as_str()),
                Node::Binary(Operator::In, name, within) if matches!(**within, Node::Arguments) => {
                    if let Node::Text(name) = name.as_ref() {
                        names.insert(name.as_str());
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Returns all parts of the expression.
    pub fn nodes(&self) -> Vec<&Node> {
        self.root.parts()
    }
}

impl Node {
    /// Returns this part and all parts within it.
    pub fn parts(&self) -> Vec<&Self> {
        let (mut nodes, mut unvisited) = (Vec::new(), vec![self]);
        while let Some(node) = unvisited.pop() {
            nodes.push(node);
            match node {
                Node::Select(operand, _)
                | Node::Has(operand, _)
                | Node::Not(operand)
                | Node::Negate(operand)
                | Node::Matches(operand, _)
                | Node::FromUser(operand)
                | Node::FromTool(operand, _) => unvisited.push(operand),
                Node::Index(first, second) | Node::Binary(_, first, second) | Node::Macro(_, first, second) => {
                    unvisited.extend([&**first, &**second]);
                }
                Node::Conditional(parts) => unvisited.extend(parts.iter()),
                Node::List(items) | Node::Call(_, items) | Node::And(items) | Node::Or(items) => {
                    unvisited.extend(items);
                }
                Node::Null
                | Node::Bool(_)
                | Node::Int(_)
                | Node::Uint(_)
                | Node::Double(_)
                | Node::Text(_)
                | Node::Arguments
                | Node::Argument(_)
                | Node::NamedList(_)
                | Node::Result
                | Node::Step(_)
                | Node::Earlier(..)
                | Node::Item(_) => {}
            }
        }
        nodes
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
    #[case::in_args("'amount' in args && x in args && 'y' in z", &["amount", "x", "z"])]
    #[case::in_a_macro("items.all(item, item.price < max_price)", &["items", "max_price"])]
    #[case::in_a_conditional("express ? size(items) > 1 : false", &["express", "items"])]
    #[case::in_functions("fromUser(a) && !fromTool(b, 'x') && c.matches('y') && host(d) in lists.e", &["a", "b", "c", "d"])]
    #[case::none("1 < 2", &[])]
    fn variables_are_found_at_any_depth(#[case] text: &str, #[case] names: &[&str]) {
        let condition = Program::parse(text).unwrap();
        assert_eq!(condition.variables().into_iter().collect::<Vec<_>>(), names);
    }
}
