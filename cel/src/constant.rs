//! Expressions that have the same value for every call.

use crate::Program;
use crate::evaluate::{Scope, evaluate};
use crate::facts::NoFacts;
use crate::node::Node;
use serde_json::Map;

impl Program {
    /// Returns the value that the expression has for every call for which it has a value, if its parts without variables decide it.
    pub fn constant(&self) -> Option<bool> {
        self.root.constant()
    }
}

impl Node {
    fn constant(&self) -> Option<bool> {
        match self {
            Self::Not(operand) => operand.constant().map(|truth| !truth),
            Self::And(sides) => decided(sides, /*decisive*/ false),
            Self::Or(sides) => decided(sides, /*decisive*/ true),
            Self::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                match condition.constant() {
                    Some(true) => yes.constant(),
                    Some(false) => no.constant(),
                    None => {
                        let truth = yes.constant();
                        truth.filter(|_| truth == no.constant())
                    }
                }
            }
            _ if self.reads_something() => None,
            _ => evaluate(self, Scope { variables: &Map::new(), declared_optional: &[], facts: &NoFacts }).ok(),
        }
    }

    /// Returns whether a part reads the call or the conversation.
    fn reads_something(&self) -> bool {
        let reads = |part: &&Self| {
            matches!(
                part,
                Self::Arguments
                    | Self::Argument(_)
                    | Self::NamedList(_)
                    | Self::Result
                    | Self::Step(_)
                    | Self::FromUser(_)
                    | Self::FromTool(..)
                    | Self::Earlier(..)
            )
        };
        self.parts().iter().any(reads)
    }
}

/// Returns the value of `&&` (`decisive` is false) or `||` (`decisive` is true).
fn decided(sides: &[Node], decisive: bool) -> Option<bool> {
    let values: Vec<Option<bool>> = sides.iter().map(Node::constant).collect();
    if values.contains(&Some(decisive)) {
        return Some(decisive);
    }
    values.iter().all(Option::is_some).then_some(!decisive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_literal("false", Some(false))]
    #[case::a_comparison("1 + 1 > 1", Some(true))]
    #[case::a_function("'abc'.startsWith('a')", Some(true))]
    #[case::a_macro("[1, 2].exists(n, n > 2)", Some(false))]
    #[case::one_side_of_and("amount > 5 && false", Some(false))]
    #[case::one_side_of_or("amount > 5 || !false", Some(true))]
    #[case::both_sides("true && 1 < 2", Some(true))]
    #[case::a_choice("urgent ? false : 1 > 2", Some(false))]
    #[case::no_choice("true ? amount > 5 : true", None)]
    #[case::an_argument("amount > 5", None)]
    #[case::an_argument_in_a_macro("[1, 2].exists(n, n == amount)", None)]
    #[case::a_constant_side_that_does_not_decide("amount > 5 || false", None)]
    #[case::a_source("fromUser('month')", None)]
    #[case::earlier_calls("size(calls('x')) > 1", None)]
    #[case::an_error("1 / 0 > 1", None)]
    fn a_condition_is_constant_if_its_variables_do_not_matter(#[case] text: &str, #[case] expected: Option<bool>) {
        assert_eq!(Program::parse(text).unwrap().constant(), expected);
    }
}
