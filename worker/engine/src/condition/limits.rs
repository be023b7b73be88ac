//! Finds the arguments that a condition compares with numbers, and the direction.

use super::Condition;
use bloomery_cel::{Function, Node, Operator};
use std::collections::BTreeMap;

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
            let difference = Linear::read(left).zip(Linear::read(right)).map(|(left, right)| left.plus(&right, -1.0));
            limits.extend(difference.filter(|of| of.has_number).iter().flat_map(|of| of.limits(is_more == wanted)));
        }
        _ => {}
    }
}

/// A sum of arguments, each with a factor, and of a number.
struct Linear<'a> {
    factors: BTreeMap<&'a str, f64>,
    number: f64,
    /// Whether the author wrote a number in it. A comparison of two arguments is no limit.
    has_number: bool,
}

impl<'a> Linear<'a> {
    /// Reads a part that is such a sum.
    fn read(node: &'a Node) -> Option<Self> {
        if let Some(number) = number(node) {
            return Some(Self { factors: BTreeMap::new(), number, has_number: true });
        }
        match node {
            Node::Argument(name) => {
                Some(Self { factors: BTreeMap::from([(name.as_str(), 1.0)]), number: 0.0, has_number: false })
            }
            Node::Call(Function::Double | Function::Int | Function::Uint, operands) => Self::read(operands.first()?),
            Node::Negate(operand) => Some(Self::read(operand)?.times(-1.0)),
            Node::Binary(Operator::Add, left, right) => Some(Self::read(left)?.plus(&Self::read(right)?, 1.0)),
            Node::Binary(Operator::Subtract, left, right) => Some(Self::read(left)?.plus(&Self::read(right)?, -1.0)),
            Node::Binary(Operator::Multiply, left, right) => match (number(left), number(right)) {
                (_, Some(factor)) => Some(Self::read(left)?.times(factor)),
                (Some(factor), _) => Some(Self::read(right)?.times(factor)),
                // Of two arguments, either may be negative.
                (None, None) => Some(Self::read(left)?.plus(&Self::read(right)?, 1.0)),
            },
            Node::Binary(Operator::Divide, left, right) => {
                let divisor = number(right).filter(|divisor| *divisor != 0.0)?;
                Some(Self::read(left)?.times(1.0 / divisor))
            }
            _ => None,
        }
    }

    fn times(self, factor: f64) -> Self {
        let factors = self.factors.into_iter().map(|(name, of)| (name, of * factor)).collect();
        Self { factors, number: self.number * factor, has_number: true }
    }

    fn plus(mut self, other: &Self, sign: f64) -> Self {
        for (&name, factor) in &other.factors {
            *self.factors.entry(name).or_default() += factor * sign;
        }
        Self {
            number: self.number + other.number * sign,
            has_number: self.has_number || other.has_number,
            factors: self.factors,
        }
    }

    /// Returns the limits of the arguments. `is_upper` says whether the condition can be true because the sum is more than zero. Among
    /// several arguments, only upper limits are known.
    fn limits(&self, is_upper: bool) -> Vec<Limit<'a>> {
        let factors = self.factors.iter().filter(|(_, factor)| **factor != 0.0);
        let is_single = factors.clone().count() == 1;
        let limit = |(&argument, factor): (&&'a str, &f64)| Limit {
            argument,
            is_upper: is_upper == (*factor > 0.0),
            number: if is_single { -self.number / factor } else { 0.0 },
        };
        factors.map(limit).filter(|limit| is_single || limit.is_upper).collect()
    }
}

/// Returns the number that a part is.
pub(super) fn number(node: &Node) -> Option<f64> {
    match node {
        // Exact enough to know the sign.
        Node::Int(value) => value.to_string().parse().ok(),
        Node::Uint(value) => value.to_string().parse().ok(),
        Node::Double(value) => Some(*value),
        Node::Negate(operand) => number(operand).map(|number| -number),
        _ => None,
    }
}
