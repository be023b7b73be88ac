//! Finds the arguments that a condition compares with numbers, and the direction.

use super::Condition;
use bloomery_cel::{Function, Node, Operator};

/// A comparison of an argument with a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit<'a> {
    /// The argument.
    pub argument: &'a str,
    /// Whether the condition can be true because the argument is large. Otherwise, because it is small.
    pub is_upper: bool,
    /// The number.
    pub number: f64,
}

impl Condition {
    /// Returns the comparisons of arguments with numbers.
    pub fn limits(&self) -> Vec<Limit<'_>> {
        let mut limits = Vec::new();
        collect(self.program.root(), /*wanted*/ true, &mut limits);
        limits
    }
}

/// Collects the comparisons in a part that must be `wanted` for the condition to be true.
fn collect<'a>(node: &'a Node, wanted: bool, limits: &mut Vec<Limit<'a>>) {
    match node {
        Node::Not(operand) => collect(operand, !wanted, limits),
        Node::And(sides) | Node::Or(sides) => {
            for side in sides {
                collect(side, wanted, limits);
            }
        }
        Node::Conditional(parts) => {
            let [_, yes, no] = parts.as_ref();
            collect(yes, wanted, limits);
            collect(no, wanted, limits);
        }
        Node::Binary(operator, left, right) => {
            let is_more = match operator {
                Operator::Greater | Operator::GreaterOrEqual => true,
                Operator::Less | Operator::LessOrEqual => false,
                _ => return,
            };
            let limit = match (argument(left), number(right), argument(right), number(left)) {
                (Some(argument), Some(number), ..) => Limit { argument, is_upper: is_more == wanted, number },
                (_, _, Some(argument), Some(number)) => Limit { argument, is_upper: is_more != wanted, number },
                _ => return,
            };
            limits.push(limit);
        }
        _ => {}
    }
}

/// Returns the argument that a part is, or of which it is a conversion.
fn argument(node: &Node) -> Option<&str> {
    match node {
        Node::Argument(name) => Some(name),
        Node::Call(Function::Double | Function::Int | Function::Uint, operands) => operands.first().and_then(argument),
        _ => None,
    }
}

fn number(node: &Node) -> Option<f64> {
    match node {
        // Exact enough to know the sign.
        Node::Int(value) => value.to_string().parse().ok(),
        Node::Uint(value) => value.to_string().parse().ok(),
        Node::Double(value) => Some(*value),
        Node::Negate(operand) => number(operand).map(|number| -number),
        _ => None,
    }
}
