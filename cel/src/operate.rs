//! The operators and functions. As in CEL, numbers of different kinds can be compared, but arithmetic needs operands of one
//! kind: `2 * 1.5` is an error, `2.0 * 1.5` and `double(amount) * 1.5` are not.

use crate::address;
use crate::error::Error;
use crate::node::{Function, Operator};
use crate::number::Numeric;
use crate::value::{List, Text, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

fn failed<T>(sentence: impl Into<String>) -> Result<T, Error> {
    Err(Error::Evaluation(sentence.into()))
}

pub(crate) fn binary<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    let order = || {
        left.order(right)
            .ok_or_else(|| Error::Evaluation(format!("{} {operator} {} cannot be compared", left.kind(), right.kind())))
    };
    Ok(Value::Bool(match operator {
        Operator::Equal => left.equals(right),
        Operator::Unequal => !left.equals(right),
        Operator::Less => order()? == Ordering::Less,
        Operator::LessOrEqual => order()? != Ordering::Greater,
        Operator::Greater => order()? == Ordering::Greater,
        Operator::GreaterOrEqual => order()? != Ordering::Less,
        Operator::In => return membership(left, right),
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            return arithmetic(operator, left, right);
        }
    }))
}

fn membership<'a>(item: &Value<'a>, within: &Value<'a>) -> Result<Value<'a>, Error> {
    match (item, within) {
        (_, Value::List(items)) => Ok(Value::Bool(items.iter().any(|other| other.equals(item)))),
        (Value::Text(name), Value::Map(fields)) => Ok(Value::Bool(fields.contains_key(name.as_str()))),
        _ => failed(format!("{} cannot be in {}", item.kind(), within.kind())),
    }
}

fn arithmetic<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    let computed = match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(operator, *left, *right).map(Value::Int),
        (Value::Uint(left), Value::Uint(right)) => uint(operator, *left, *right).map(Value::Uint),
        // CEL defines `%` for integers only.
        (Value::Double(left), Value::Double(right)) if operator != Operator::Remainder => {
            double(operator, *left, *right).map(Value::Double)
        }
        (Value::Text(left), Value::Text(right)) if operator == Operator::Add => {
            Some(Value::Text(Text::Computed([left.as_str(), right.as_str()].concat().into())))
        }
        (Value::List(left), Value::List(right)) if operator == Operator::Add => {
            Some(Value::List(List::Computed(left.iter().chain(right.iter()).collect())))
        }
        _ => {
            let hint = match (left.numeric(), right.numeric()) {
                (Some(_), Some(_)) if left.kind() != right.kind() => {
                    ": make them of one kind, as in double(amount) * 1.5"
                }
                _ => "",
            };
            return failed(format!("{} {operator} {} is not defined{hint}", left.kind(), right.kind()));
        }
    };
    computed.map_or_else(|| failed(format!("{operator} has no result: division by zero, or out of range")), Ok)
}

fn int(operator: Operator, left: i64, right: i64) -> Option<i64> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => None,
    }
}

fn uint(operator: Operator, left: u64, right: u64) -> Option<u64> {
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => None,
    }
}

fn double(operator: Operator, left: f64, right: f64) -> Option<f64> {
    match operator {
        Operator::Add => Some(left + right),
        Operator::Subtract => Some(left - right),
        Operator::Multiply => Some(left * right),
        Operator::Divide => Some(left / right),
        _ => None,
    }
}

pub(crate) fn negate<'a>(operand: &Value<'a>) -> Result<Value<'a>, Error> {
    match operand {
        Value::Int(value) => {
            value.checked_neg().map_or_else(|| failed("- is out of range"), |negative| Ok(Value::Int(negative)))
        }
        Value::Double(value) => Ok(Value::Double(-value)),
        other => failed(format!("-{} is not defined", other.kind())),
    }
}

pub(crate) fn index<'a>(operand: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>, Error> {
    let item = match (operand, index) {
        (Value::List(items), Value::Int(index)) => usize::try_from(*index).ok().and_then(|index| items.get(index)),
        (Value::List(items), Value::Uint(index)) => usize::try_from(*index).ok().and_then(|index| items.get(index)),
        (Value::Map(fields), Value::Text(name)) => fields.get(name.as_str()).map(Value::from_json),
        _ => return failed(format!("{} cannot be indexed with {}", operand.kind(), index.kind())),
    };
    item.map_or_else(|| failed(format!("{} has no item at that index", operand.kind())), Ok)
}

pub(crate) fn call<'a>(function: Function, first: Value<'a>, second: Option<&Value<'a>>) -> Result<Value<'a>, Error> {
    let undefined = |value: &Value<'a>| failed(format!("{function}() is not defined for {}", value.kind()));
    match (function, first, second) {
        (Function::Size, value, None) => match &value {
            Value::Text(text) => count(text.as_str().chars().count()),
            Value::Bytes(text) => count(text.as_str().len()),
            Value::List(items) => count(items.len()),
            Value::Map(fields) => count(fields.len()),
            other => undefined(other),
        },
        (Function::Contains, Value::Text(text), Some(Value::Text(part))) => {
            Ok(Value::Bool(text.as_str().contains(part.as_str())))
        }
        (Function::StartsWith, Value::Text(text), Some(Value::Text(part))) => {
            Ok(Value::Bool(text.as_str().starts_with(part.as_str())))
        }
        (Function::EndsWith, Value::Text(text), Some(Value::Text(part))) => {
            Ok(Value::Bool(text.as_str().ends_with(part.as_str())))
        }
        (Function::LowerAscii, Value::Text(text), None) => {
            Ok(Value::Text(part_of(&text, |text| Some(address::lower(text))).unwrap_or(text)))
        }
        (Function::Host, Value::Text(url), None) => match part_of(&url, address::host) {
            Some(host) => Ok(Value::Text(host)),
            None => failed("host() needs a complete URL that begins with http:// or https://, with a plain host"),
        },
        (Function::Domain, Value::Text(text), None) => match part_of(&text, address::domain) {
            Some(domain) => Ok(Value::Text(domain)),
            None => failed("domain() needs one plain e-mail address"),
        },
        (Function::Int, value, None) => convert(function, &value, to_int(&value).map(Value::Int)),
        (Function::Uint, value, None) => convert(function, &value, to_uint(&value).map(Value::Uint)),
        (Function::Double, value, None) => convert(function, &value, to_double(&value).map(Value::Double)),
        (Function::String, value, None) => to_text(value),
        (Function::Bytes, Value::Text(text), None) => Ok(Value::Bytes(text)),
        (_, value, _) => undefined(&value),
    }
}

/// Applies a function that returns a part of a text, or a changed text. A part of a borrowed text is borrowed too.
fn part_of<'a>(text: &Text<'a>, part: impl FnOnce(&str) -> Option<Cow<'_, str>>) -> Option<Text<'a>> {
    Some(match text {
        Text::Borrowed(text) => match part(text)? {
            Cow::Borrowed(part) => Text::Borrowed(part),
            Cow::Owned(changed) => Text::Computed(changed.into()),
        },
        Text::Computed(text) => Text::Computed(part(text)?.into()),
    })
}

fn count<'a>(length: usize) -> Result<Value<'a>, Error> {
    i64::try_from(length).map_or_else(|_| failed("size() is out of range"), |length| Ok(Value::Int(length)))
}

fn convert<'a>(function: Function, value: &Value<'a>, converted: Option<Value<'a>>) -> Result<Value<'a>, Error> {
    converted.map_or_else(|| failed(format!("{function}() cannot convert this {}", without_article(value.kind()))), Ok)
}

fn without_article(kind: &str) -> &str {
    kind.trim_start_matches("an ").trim_start_matches("a ")
}

/// Returns the whole part of a number, or the integer in a string. A double loses its fraction, as in CEL.
fn whole_part(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Text(text) => text.as_str().parse().ok(),
        other => match other.numeric()? {
            Numeric::Whole(integer) => Some(integer),
            #[expect(clippy::cast_possible_truncation, reason = "the caller checks the range")]
            Numeric::Double(double) => double.is_finite().then(|| double.trunc() as i128),
        },
    }
}

fn to_int(value: &Value<'_>) -> Option<i64> {
    i64::try_from(whole_part(value)?).ok()
}

fn to_uint(value: &Value<'_>) -> Option<u64> {
    u64::try_from(whole_part(value)?).ok()
}

fn to_double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Text(text) => text.as_str().parse().ok(),
        #[expect(clippy::cast_precision_loss, reason = "double() rounds")]
        other => Some(match other.numeric()? {
            Numeric::Whole(integer) => integer as f64,
            Numeric::Double(double) => double,
        }),
    }
}

fn to_text(value: Value<'_>) -> Result<Value<'_>, Error> {
    let text = match value {
        Value::Text(_) => return Ok(value),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_) => {
            return failed(format!("string() is not defined for {}", value.kind()));
        }
    };
    Ok(Value::Text(Text::Computed(text.into())))
}

/// Returns the text by which the source of a value is found: that of a string, or the decimal digits of a number. `None` for other values.
pub(crate) fn token_text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.as_str().to_owned()),
        _ => value.numeric().map(|number| number.to_string()),
    }
}
