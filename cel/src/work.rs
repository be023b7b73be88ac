//! The budget of one evaluation.

use crate::error::Error;
use crate::node::Operator;
use crate::value::{List, Value};
use serde_json::{Map, Value as Json};

/// The maximum number of units that one evaluation can spend. This takes about 10 ms. As an example, a dozen comparisons for
/// each of 1,000 items spend a tenth of the maximum.
const MAX_UNITS: u64 = 200_000;

/// The units of work that an evaluation can still spend. It spends one unit for each node, each compared or copied value, and
/// each 64 bytes of text. This also bounds the memory that it allocates.
#[derive(Debug)]
pub(crate) struct WorkBudget(u64);

impl Default for WorkBudget {
    fn default() -> Self {
        Self(MAX_UNITS)
    }
}

impl WorkBudget {
    /// Spends units. Must be called before the work is done.
    ///
    /// # Errors
    /// If fewer units are left.
    pub(crate) fn spend(&mut self, units: u64) -> Result<(), Error> {
        self.0 = self.0.checked_sub(units).ok_or(Error::Exhausted)?;
        Ok(())
    }

    /// Spends the units of an operation.
    pub(crate) fn spend_on_operation(
        &mut self,
        operator: Operator,
        left: &Value<'_>,
        right: &Value<'_>,
    ) -> Result<(), Error> {
        match operator {
            Operator::Equal | Operator::Unequal => self.spend_on_comparison(left, right),
            Operator::In => match right {
                Value::List(_) => self.spend_on_contents(right),
                _ => self.spend(reading_units(left)),
            },
            Operator::Add => {
                self.spend(copying_units(left))?;
                self.spend(copying_units(right))
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                self.spend(reading_units(left).min(reading_units(right)))
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => self.spend(1),
        }
    }

    /// Spends the units of `==` or `!=`. Only lists and objects of the same size are compared item by item.
    fn spend_on_comparison(&mut self, left: &Value<'_>, right: &Value<'_>) -> Result<(), Error> {
        match (left, right) {
            (Value::List(one), Value::List(other)) if one.len() == other.len() => self.spend_on_contents(left),
            (Value::Map(one), Value::Map(other)) if one.len() == other.len() => self.spend_on_contents(left),
            _ => self.spend(reading_units(left).min(reading_units(right))),
        }
    }

    /// Spends the units to read a value and everything in it.
    fn spend_on_contents(&mut self, value: &Value<'_>) -> Result<(), Error> {
        self.spend(reading_units(value))?;
        match value {
            Value::List(List::Borrowed(items)) => items.iter().try_for_each(|item| self.spend_on_json(item)),
            Value::List(List::Computed(items)) => items.iter().try_for_each(|item| self.spend_on_contents(item)),
            Value::Map(fields) => self.spend_on_fields(fields),
            _ => Ok(()),
        }
    }

    fn spend_on_json(&mut self, json: &Json) -> Result<(), Error> {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => self.spend(1),
            Json::String(text) => self.spend(text_units(text)),
            Json::Array(items) => {
                self.spend(1)?;
                items.iter().try_for_each(|item| self.spend_on_json(item))
            }
            Json::Object(fields) => {
                self.spend(1)?;
                self.spend_on_fields(fields)
            }
        }
    }

    fn spend_on_fields(&mut self, fields: &Map<String, Json>) -> Result<(), Error> {
        fields.iter().try_for_each(|(name, field)| {
            self.spend(text_units(name))?;
            self.spend_on_json(field)
        })
    }
}

/// Returns the units to read a value without its items.
pub(crate) fn reading_units(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) | Value::Bytes(text) => text_units(text.as_str()),
        _ => 1,
    }
}

/// Returns the units to copy a value's items or text.
fn copying_units(value: &Value<'_>) -> u64 {
    match value {
        Value::List(items) => 1 + items.len() as u64,
        other => reading_units(other),
    }
}

fn text_units(text: &str) -> u64 {
    1 + text.len() as u64 / 64
}
