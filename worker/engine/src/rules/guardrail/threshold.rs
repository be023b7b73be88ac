//! Comparisons of a field with a number.

use bloomery_cel::number::{Numeric, compare};
use bloomery_crds::v1alpha1::Verdict;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// A comparison of a field with a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The field, at any depth of the arguments.
    pub field: String,
    /// The comparison.
    pub operator: Comparison,
    /// The number.
    pub value: Number,
    /// The result of the comparison that breaks the rule: true for a forbidden range, false for a required one.
    pub broken_when: bool,
    /// The verdict on a call that breaks the rule.
    pub verdict: Verdict,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Comparison {
    /// At least.
    #[strum(serialize = ">=")]
    AtLeast,
    /// At most.
    #[strum(serialize = "<=")]
    AtMost,
    /// More than.
    #[strum(serialize = ">")]
    MoreThan,
    /// Less than.
    #[strum(serialize = "<")]
    LessThan,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::AtLeast => order != Ordering::Less,
            Self::AtMost => order != Ordering::Greater,
            Self::MoreThan => order == Ordering::Greater,
            Self::LessThan => order == Ordering::Less,
        }
    }
}

impl Threshold {
    /// Returns a sentence if a value of the field breaks the rule. A value that cannot be compared breaks the rule.
    pub fn broken_by(&self, value: &Value) -> Option<String> {
        let Value::Number(number) = value else {
            return Some(format!("{} is not a number", self.field));
        };
        let Some(order) = compare(Numeric::from_json(number), Numeric::from_json(&self.value)) else {
            return Some(format!("{} cannot be compared", self.field));
        };
        (self.operator.holds(order) == self.broken_when).then(|| format!("{} is {number}", self.field))
    }
}
