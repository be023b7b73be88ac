//! Finds comparisons that exclude each other, such as `amount < 0 && amount > 500`, and sizes below 0: the part has the same value for every
//! call.

use super::Condition;
use super::limits::number;
use super::sources::part_of_argument;
use bloomery_cel::{Function, Node, Operator};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Above this number, not every integer is exact.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The comparison of a value with a constant.
#[derive(Debug)]
struct Constraint<'a> {
    value: &'a Node,
    operator: Operator,
    constant: &'a Node,
}

impl Condition {
    /// Returns the arguments whose comparisons exclude each other, each with the constant value of the part with these comparisons. `None`
    /// stands for a value that is no argument.
    pub(crate) fn exclusive_comparisons(&self) -> BTreeSet<(Option<String>, bool)> {
        let mut found = BTreeSet::new();
        for node in self.nodes() {
            // `a && b` is never true if the sides cannot be true together, and `a || b` is always true if they cannot be false together.
            let truth = match node {
                Node::And(_) => true,
                Node::Or(_) => false,
                _ => continue,
            };
            let mut constraints = Vec::new();
            collect(node, truth, &mut constraints);
            let pairs = constraints.iter().enumerate().flat_map(|(at, one)| {
                let others = constraints.get(at + 1..).unwrap_or_default();
                others.iter().map(move |other| (one, other))
            });
            let excluded = pairs.filter(|(one, other)| one.value == other.value && one.excludes(other));
            let names = excluded.map(|(one, _)| part_of_argument(one.value, &[]));
            found.extend(names.map(|name| (name, !truth)));
        }
        found
    }

    /// Returns the values of the comparisons of a size with a number that have the same value for every size, such as `size(x) < 0`.
    pub(crate) fn constant_sizes(&self) -> BTreeSet<bool> {
        self.nodes().into_iter().filter_map(size_comparison).collect()
    }
}

/// Returns the value of a comparison of a size with a number, if it is the same for every size.
fn size_comparison(node: &Node) -> Option<bool> {
    let Node::Binary(operator, left, right) = node else { return None };
    let comparison = Constraint::read(*operator, left, right)?;
    let Node::Call(Function::Size, _) = comparison.value else { return None };
    let is_impossible = |comparison: &Constraint<'_>| {
        comparison.range().is_some_and(|(_, largest)| is_below(largest, Bound::Included(0.0)))
    };
    if is_impossible(&comparison) {
        return Some(false);
    }
    let operator = opposite(comparison.operator)?;
    is_impossible(&Constraint { operator, ..comparison }).then_some(true)
}

/// Collects the comparisons that must all hold for a part to have the value `truth`.
fn collect<'a>(node: &'a Node, truth: bool, found: &mut Vec<Constraint<'a>>) {
    match node {
        Node::Not(operand) => collect(operand, !truth, found),
        Node::And(sides) if truth => sides.iter().for_each(|side| collect(side, truth, found)),
        Node::Or(sides) if !truth => sides.iter().for_each(|side| collect(side, truth, found)),
        Node::Binary(operator, left, right) => {
            let operator = if truth { Some(*operator) } else { opposite(*operator) };
            found.extend(operator.and_then(|operator| Constraint::read(operator, left, right)));
        }
        _ => {}
    }
}

/// Returns the operator of a comparison that does not hold.
fn opposite(operator: Operator) -> Option<Operator> {
    Some(match operator {
        Operator::Equal => Operator::Unequal,
        Operator::Unequal => Operator::Equal,
        Operator::Less => Operator::GreaterOrEqual,
        Operator::GreaterOrEqual => Operator::Less,
        Operator::Greater => Operator::LessOrEqual,
        Operator::LessOrEqual => Operator::Greater,
        _ => return None,
    })
}

/// Returns the operator of a comparison with its sides exchanged.
fn exchanged(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::Greater => Operator::Less,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}

fn is_constant(node: &Node) -> bool {
    matches!(node, Node::Text(_)) || number(node).is_some_and(|number| number.abs() < MAX_EXACT)
}

impl<'a> Constraint<'a> {
    fn read(operator: Operator, left: &'a Node, right: &'a Node) -> Option<Self> {
        match (is_constant(left), is_constant(right)) {
            (false, true) => Some(Self { value: left, operator, constant: right }),
            (true, false) => Some(Self { value: right, operator: exchanged(operator), constant: left }),
            _ => None,
        }
    }

    /// Returns whether this comparison and another one of the same value cannot both hold.
    fn excludes(&self, other: &Self) -> bool {
        match (self.operator, other.operator) {
            (Operator::Equal, Operator::Unequal) | (Operator::Unequal, Operator::Equal) => {
                self.constant == other.constant
            }
            (Operator::Equal, Operator::Equal) if matches!(self.constant, Node::Text(_)) => {
                matches!(other.constant, Node::Text(_)) && self.constant != other.constant
            }
            _ => match (self.range(), other.range()) {
                (Some(one), Some(other)) => is_below(one.1, other.0) || is_below(other.1, one.0),
                _ => false,
            },
        }
    }

    /// Returns the least and the largest number for which the comparison holds.
    fn range(&self) -> Option<(Bound<f64>, Bound<f64>)> {
        let number = number(self.constant)?;
        match self.operator {
            Operator::Equal => Some((Bound::Included(number), Bound::Included(number))),
            Operator::Less => Some((Bound::Unbounded, Bound::Excluded(number))),
            Operator::LessOrEqual => Some((Bound::Unbounded, Bound::Included(number))),
            Operator::Greater => Some((Bound::Excluded(number), Bound::Unbounded)),
            Operator::GreaterOrEqual => Some((Bound::Included(number), Bound::Unbounded)),
            _ => None,
        }
    }
}

/// Returns whether no number is at most `largest` and at least `least`.
fn is_below(largest: Bound<f64>, least: Bound<f64>) -> bool {
    match (largest, least) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(largest), Bound::Included(least)) => largest < least,
        (Bound::Included(largest) | Bound::Excluded(largest), Bound::Included(least) | Bound::Excluded(least)) => {
            largest <= least
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::both_ends("a < 0 && a > 500", &[("a", false)])]
    #[case::with_another_side("a > 500 && b == 'x' && !(a >= 100)", &[("a", false)])]
    #[case::one_end("a >= 5 && 5 > a", &[("a", false)])]
    #[case::two_numbers("a == 5 && a == 6.5", &[("a", false)])]
    #[case::two_texts("b == 'x' && b == 'y'", &[("b", false)])]
    #[case::equal_and_not("b == 'x' && b != 'x'", &[("b", false)])]
    #[case::in_a_part("a > 500 || (a < 0 && a > 10)", &[("a", false)])]
    #[case::of_items("xs.exists(x, x.n < 1 && x.n > 2)", &[("", false)])]
    #[case::every_number("a > 0 || a <= 500", &[("a", true)])]
    #[case::every_text("b != 'x' || b != 'y'", &[("b", true)])]
    #[case::under_a_negation("!(a >= 0 || a <= 500)", &[("a", true)])]
    #[case::of_a_field("c.n > 5 && c.n < 4", &[("c.n", false)])]
    #[case::of_a_size("size(xs) > 5 && size(xs) < 4", &[("", false)])]
    #[case::a_range("a > 500 && a <= 10000", &[])]
    #[case::one_number("a >= 5 && a <= 5", &[])]
    #[case::no_whole_number_between("a > 5 && a < 6", &[])]
    #[case::two_arguments("a < 0 && b > 500", &[])]
    #[case::one_of_two("a < 0 || a > 500", &[])]
    #[case::one_of_two_texts("b == 'x' || b == 'y'", &[])]
    #[case::none_of_two_texts("b != 'x' && b != 'y'", &[])]
    #[case::an_unknown_side("a < b && a > 500", &[])]
    #[case::two_items("xs.exists(x, x == 'a') && xs.exists(x, x == 'b')", &[])]
    #[case::beyond_exact_numbers("a >= 9007199254740992 && a < 9007199254740993", &[])]
    fn comparisons_that_exclude_each_other_are_found(#[case] text: &str, #[case] expected: &[(&str, bool)]) {
        let found = Condition::compile(text).unwrap().exclusive_comparisons();
        let found: Vec<_> =
            found.iter().map(|(name, is_true)| (name.as_deref().unwrap_or_default(), *is_true)).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::less("size(xs) < 0", Some(false))]
    #[case::turned_round("0 > xs.size()", Some(false))]
    #[case::at_most("size(xs) <= -1", Some(false))]
    #[case::equal("size(xs) == -1", Some(false))]
    #[case::at_least("size(xs) >= 0", Some(true))]
    #[case::unequal("y || !(size(xs) != -1)", Some(true))]
    #[case::empty("size(xs) == 0 || size(xs) <= 0 || size(xs) < 1", None)]
    #[case::not_empty("size(xs) > 0 && size(xs) != 0", None)]
    #[case::of_two_sizes("size(xs) < size(ys)", None)]
    #[case::no_size("x < 0", None)]
    fn a_size_is_never_negative(#[case] text: &str, #[case] expected: Option<bool>) {
        let found = Condition::compile(text).unwrap().constant_sizes();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), Vec::from_iter(expected));
    }
}
