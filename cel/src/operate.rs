//! The operators and functions. As in CEL, numbers of different kinds compare, but do not mix: `2 * 1.5` is an error,
//! `2.0 * 1.5` and `double(amount) * 1.5` are not.

use crate::error::Error;
use crate::node::{Function, Operator};
use crate::number::Numeric;
use crate::value::{List, Text, Value};
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
        Operator::In => return contains(left, right),
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            return arithmetic(operator, left, right);
        }
    }))
}

fn contains<'a>(item: &Value<'a>, within: &Value<'a>) -> Result<Value<'a>, Error> {
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
        (Value::Double(left), Value::Double(right)) => double(operator, *left, *right).map(Value::Double),
        (Value::Text(left), Value::Text(right)) if operator == Operator::Add => {
            Some(Value::Text(Text::Made([left.as_str(), right.as_str()].concat().into())))
        }
        (Value::List(left), Value::List(right)) if operator == Operator::Add => {
            Some(Value::List(List::Made(left.iter().chain(right.iter()).collect())))
        }
        _ => {
            let hint = match (left.numeric(), right.numeric()) {
                (Some(_), Some(_)) => ": make them of one kind, as in double(amount) * 1.5",
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

pub(crate) fn negate<'a>(of: &Value<'a>) -> Result<Value<'a>, Error> {
    match of {
        Value::Int(of) => of.checked_neg().map_or_else(|| failed("- is out of range"), |of| Ok(Value::Int(of))),
        Value::Double(of) => Ok(Value::Double(-of)),
        other => failed(format!("-{} is not defined", other.kind())),
    }
}

pub(crate) fn index<'a>(of: &Value<'a>, at: &Value<'a>) -> Result<Value<'a>, Error> {
    let found = match (of, at) {
        (Value::List(items), Value::Int(at)) => usize::try_from(*at).ok().and_then(|at| items.get(at)),
        (Value::List(items), Value::Uint(at)) => usize::try_from(*at).ok().and_then(|at| items.get(at)),
        (Value::Map(fields), Value::Text(name)) => fields.get(name.as_str()).map(Value::from_json),
        _ => return failed(format!("{} has no place for {}", of.kind(), at.kind())),
    };
    found.map_or_else(|| failed(format!("{} has nothing at that place", of.kind())), Ok)
}

pub(crate) fn call<'a>(function: Function, of: Value<'a>, with: Option<&Value<'a>>) -> Result<Value<'a>, Error> {
    let undefined = |of: &Value<'a>| failed(format!("{function}() is not defined for {}", of.kind()));
    match (function, of, with) {
        (Function::Size, of, None) => match &of {
            Value::Text(text) => count(text.as_str().chars().count()),
            Value::Bytes(text) => count(text.as_str().len()),
            Value::List(items) => count(items.len()),
            Value::Map(fields) => count(fields.len()),
            other => undefined(other),
        },
        (Function::Contains, Value::Text(of), Some(Value::Text(part))) => {
            Ok(Value::Bool(of.as_str().contains(part.as_str())))
        }
        (Function::StartsWith, Value::Text(of), Some(Value::Text(part))) => {
            Ok(Value::Bool(of.as_str().starts_with(part.as_str())))
        }
        (Function::EndsWith, Value::Text(of), Some(Value::Text(part))) => {
            Ok(Value::Bool(of.as_str().ends_with(part.as_str())))
        }
        (Function::Int, of, None) => convert(function, &of, to_int(&of).map(Value::Int)),
        (Function::Uint, of, None) => convert(function, &of, to_uint(&of).map(Value::Uint)),
        (Function::Double, of, None) => convert(function, &of, to_double(&of).map(Value::Double)),
        (Function::String, of, None) => to_text(of),
        (Function::Bytes, Value::Text(text), None) => Ok(Value::Bytes(text)),
        (_, of, _) => undefined(&of),
    }
}

fn count<'a>(of: usize) -> Result<Value<'a>, Error> {
    i64::try_from(of).map_or_else(|_| failed("size() is out of range"), |of| Ok(Value::Int(of)))
}

fn convert<'a>(function: Function, of: &Value<'a>, made: Option<Value<'a>>) -> Result<Value<'a>, Error> {
    made.map_or_else(|| failed(format!("{function}() cannot be made of this {}", bare(of.kind()))), Ok)
}

fn bare(kind: &str) -> &str {
    kind.trim_start_matches("an ").trim_start_matches("a ")
}

/// Returns the whole part of a number, or the integer in a string. A double loses its fraction, as in CEL.
fn whole(of: &Value<'_>) -> Option<i128> {
    match of {
        Value::Text(text) => text.as_str().parse().ok(),
        other => match other.numeric()? {
            Numeric::Whole(of) => Some(of),
            #[expect(clippy::cast_possible_truncation, reason = "the caller checks the range")]
            Numeric::Double(of) => of.is_finite().then(|| of.trunc() as i128),
        },
    }
}

fn to_int(of: &Value<'_>) -> Option<i64> {
    i64::try_from(whole(of)?).ok()
}

fn to_uint(of: &Value<'_>) -> Option<u64> {
    u64::try_from(whole(of)?).ok()
}

fn to_double(of: &Value<'_>) -> Option<f64> {
    match of {
        Value::Text(text) => text.as_str().parse().ok(),
        #[expect(clippy::cast_precision_loss, reason = "double() rounds")]
        other => Some(match other.numeric()? {
            Numeric::Whole(of) => of as f64,
            Numeric::Double(of) => of,
        }),
    }
}

fn to_text(of: Value<'_>) -> Result<Value<'_>, Error> {
    let text = match of {
        Value::Text(_) => return Ok(of),
        Value::Bool(of) => of.to_string(),
        Value::Int(of) => of.to_string(),
        Value::Uint(of) => of.to_string(),
        Value::Double(of) => of.to_string(),
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_) => {
            return failed(format!("string() is not defined for {}", of.kind()));
        }
    };
    Ok(Value::Text(Text::Made(text.into())))
}
