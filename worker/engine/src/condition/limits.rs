//! Finds the arguments that a condition compares with numbers, and the direction.

use super::Condition;
use super::sources::{part_of_argument, visit};
use bloomery_cel::{Function, Node, Operator};
use std::collections::BTreeMap;

/// A comparison of an argument, or of a part of it, with a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The argument, such as `amount`, `payment.amount` or `lines[].price`.
    pub argument: String,
    /// Whether the condition can be true because the argument is large. Otherwise, because it is small.
    pub is_upper: bool,
    /// The number.
    pub number: f64,
}

impl Condition {
    /// Returns the comparisons of arguments with numbers. A comparison whose direction is not known, such as within `exists_one`, is left
    /// out.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        visit(self.program.root(), /*wanted*/ true, &mut Vec::new(), &mut |node, wanted, items| {
            let Node::Binary(operator, left, right) = node else { return };
            let is_more = match operator {
                Operator::Greater | Operator::GreaterOrEqual => true,
                Operator::Less | Operator::LessOrEqual => false,
                _ => return,
            };
            let sides = Linear::read(left, items).zip(Linear::read(right, items));
            let difference = sides.map(|(left, right)| left.plus(&right, -1.0));
            limits.extend(difference.filter(|of| of.has_number).iter().flat_map(|of| of.limits(is_more == wanted)));
        });
        limits
    }
}

/// A sum of arguments, each with a factor, and of a number.
struct Linear {
    factors: BTreeMap<String, f64>,
    number: f64,
    /// Whether the author wrote a number in it. A comparison of two arguments is no limit.
    has_number: bool,
}

impl Linear {
    /// Reads a part that is such a sum. `items` are the values of the enclosing macros, the outermost first.
    fn read(node: &Node, items: &[Option<String>]) -> Option<Self> {
        let read = |node: &Node| Self::read(node, items);
        if let Some(number) = number(node) {
            return Some(Self { factors: BTreeMap::new(), number, has_number: true });
        }
        match node {
            Node::Call(Function::Double | Function::Int | Function::Uint, operands) => read(operands.first()?),
            Node::Negate(operand) => Some(read(operand)?.times(-1.0)),
            Node::Binary(Operator::Add, left, right) => Some(read(left)?.plus(&read(right)?, 1.0)),
            Node::Binary(Operator::Subtract, left, right) => Some(read(left)?.plus(&read(right)?, -1.0)),
            Node::Binary(Operator::Multiply, left, right) => match (number(left), number(right)) {
                (_, Some(factor)) => Some(read(left)?.times(factor)),
                (Some(factor), _) => Some(read(right)?.times(factor)),
                // Of two arguments, either may be negative.
                (None, None) => Some(read(left)?.plus(&read(right)?, 1.0)),
            },
            Node::Binary(Operator::Divide, left, right) => {
                let divisor = number(right).filter(|divisor| *divisor != 0.0)?;
                Some(read(left)?.times(1.0 / divisor))
            }
            _ => {
                let name = part_of_argument(node, items)?;
                Some(Self { factors: BTreeMap::from([(name, 1.0)]), number: 0.0, has_number: false })
            }
        }
    }

    fn times(self, factor: f64) -> Self {
        let factors = self.factors.into_iter().map(|(name, of)| (name, of * factor)).collect();
        Self { factors, number: self.number * factor, has_number: true }
    }

    fn plus(mut self, other: &Self, sign: f64) -> Self {
        for (name, factor) in &other.factors {
            *self.factors.entry(name.clone()).or_default() += factor * sign;
        }
        Self {
            number: self.number + other.number * sign,
            has_number: self.has_number || other.has_number,
            factors: self.factors,
        }
    }

    /// Returns the limits of the arguments. `is_upper` says whether the condition can be true because the sum is more than zero. Among
    /// several arguments, only upper limits are known.
    fn limits(&self, is_upper: bool) -> Vec<Limit> {
        let factors = self.factors.iter().filter(|(_, factor)| **factor != 0.0);
        let is_single = factors.clone().count() == 1;
        let limit = |(argument, factor): (&String, &f64)| Limit {
            argument: argument.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::an_argument("amount > 500", &[("amount", true)])]
    #[case::a_field("payment.amount > 500 || payment.amount < 0", &[("payment.amount", true), ("payment.amount", false)])]
    #[case::a_field_of_items("lines.exists(l, has(l.price) && l.price * 2 > 100)", &[("lines[].price", true)])]
    #[case::all_items("!amounts.all(a, a <= 500)", &[("amounts[]", true)])]
    #[case::items_of_items("orders.exists(o, o.lines.exists(l, l.price > o.limit + 5))", &[("orders[].lines[].price", true)])]
    #[case::of_results("results('x').exists(r, r.amount > 500)", &[])]
    #[case::of_no_known_direction("lines.exists_one(l, l.price > 500)", &[])]
    fn the_arguments_that_are_compared_with_numbers_are_known(#[case] text: &str, #[case] expected: &[(&str, bool)]) {
        let limits = Condition::compile(text).unwrap().limits();
        let found: Vec<_> = limits.iter().map(|limit| (limit.argument.as_str(), limit.is_upper)).collect();
        assert_eq!(found, expected);
    }
}
