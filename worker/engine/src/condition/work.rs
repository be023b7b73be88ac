//! The budget of one evaluation.

use super::fault::Fault;
use super::lower::Operator;
use super::value::{List, Value};
use serde_json::{Map, Value as Json};

/// What one evaluation may spend: about 10 ms. A thousand items with a dozen comparisons each take a tenth of it.
const BUDGET: u64 = 200_000;

/// The work that is left: one unit for each step, each part that is looked at, and each 64 bytes of text. What an
/// evaluation allocates is bounded by the same number.
#[derive(Debug)]
pub(super) struct Work(u64);

impl Default for Work {
    fn default() -> Self {
        Self(BUDGET)
    }
}

impl Work {
    /// Spends before the work is done.
    pub(super) fn spend(&mut self, units: u64) -> Result<(), Fault> {
        self.0 = self.0.checked_sub(units).ok_or(Fault::Exhausted)?;
        Ok(())
    }

    /// Spends what an operator will look at or copy.
    pub(super) fn spend_on_operation(
        &mut self,
        operator: Operator,
        left: &Value<'_>,
        right: &Value<'_>,
    ) -> Result<(), Fault> {
        match operator {
            Operator::Equal | Operator::Unequal => self.spend_on_comparison(left, right),
            Operator::In => match right {
                Value::List(_) => self.spend_on_all_of(right),
                _ => self.spend(shallow(left)),
            },
            Operator::Add => {
                self.spend(length(left))?;
                self.spend(length(right))
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                self.spend(shallow(left).min(shallow(right)))
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => self.spend(1),
        }
    }

    /// Two lists or objects of one size are looked through; of anything else the first look tells.
    fn spend_on_comparison(&mut self, left: &Value<'_>, right: &Value<'_>) -> Result<(), Fault> {
        match (left, right) {
            (Value::List(one), Value::List(other)) if one.len() == other.len() => self.spend_on_all_of(left),
            (Value::Map(one), Value::Map(other)) if one.len() == other.len() => self.spend_on_all_of(left),
            _ => self.spend(shallow(left).min(shallow(right))),
        }
    }

    fn spend_on_all_of(&mut self, value: &Value<'_>) -> Result<(), Fault> {
        self.spend(shallow(value))?;
        match value {
            Value::List(List::Lent(items)) => items.iter().try_for_each(|item| self.spend_on_json(item)),
            Value::List(List::Made(items)) => items.iter().try_for_each(|item| self.spend_on_all_of(item)),
            Value::Map(fields) => self.spend_on_fields(fields),
            _ => Ok(()),
        }
    }

    fn spend_on_json(&mut self, json: &Json) -> Result<(), Fault> {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => self.spend(1),
            Json::String(text) => self.spend(of_text(text)),
            Json::Array(items) => {
                self.spend(1)?;
                items.iter().try_for_each(|item| self.spend_on_json(item))
            }
            Json::Object(fields) => self.spend_on_fields(fields),
        }
    }

    fn spend_on_fields(&mut self, fields: &Map<String, Json>) -> Result<(), Fault> {
        fields.iter().try_for_each(|(name, field)| {
            self.spend(of_text(name))?;
            self.spend_on_json(field)
        })
    }
}

/// What a look at a value costs that does not go into its parts.
pub(super) fn shallow(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => of_text(text.as_str()),
        _ => 1,
    }
}

/// What copying a value's items or text costs.
fn length(value: &Value<'_>) -> u64 {
    match value {
        Value::List(items) => 1 + items.len() as u64,
        other => shallow(other),
    }
}

fn of_text(text: &str) -> u64 {
    1 + text.len() as u64 / 64
}
