//! The values of an evaluation: views of the variables, and computed values.

use crate::number::{Numeric, compare};
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use std::rc::Rc;

/// A value. Cloning one copies no text and no list.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    /// A string as its bytes in UTF-8.
    Bytes(Text<'a>),
    List(List<'a>),
    Map(&'a Map<String, Json>),
}

/// A string: borrowed from the variables or the expression, or computed.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Computed(Rc<str>),
}

/// A list: borrowed from the variables, or computed.
#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Borrowed(&'a [Json]),
    Computed(Rc<[Value<'a>]>),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Computed(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(items) => items.len(),
            Self::Computed(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value<'a>> {
        match self {
            Self::Borrowed(items) => items.get(at).map(Value::from_json),
            Self::Computed(items) => items.get(at).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl<'a> Value<'a> {
    /// Returns a view of a JSON value. An integer becomes an Int if it fits, so that `amount * 2` works.
    pub(crate) fn from_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Self::Int(integer),
                (None, Some(integer)) => Self::Uint(integer),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Text::Borrowed(text)),
            Json::Array(items) => Self::List(List::Borrowed(items)),
            Json::Object(fields) => Self::Map(fields),
        }
    }

    /// Returns the kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Uint(_) => "a uint",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }

    /// Returns the value as a number, if it is one.
    pub(crate) fn numeric(&self) -> Option<Numeric> {
        match self {
            Self::Int(integer) => Some(Numeric::Whole((*integer).into())),
            Self::Uint(integer) => Some(Numeric::Whole((*integer).into())),
            Self::Double(double) => Some(Numeric::Double(*double)),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::Bytes(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Compares two values of the same kind. All numbers count as one kind. Returns `None` if the values have no order.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => Some(left.cmp(right)),
            (Self::Text(left), Self::Text(right)) | (Self::Bytes(left), Self::Bytes(right)) => {
                Some(left.as_str().cmp(right.as_str()))
            }
            _ => compare(self.numeric()?, other.numeric()?),
        }
    }

    /// Returns whether two values are equal. Values of different kinds are not equal; numbers compare by value.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| left.equals(&right))
            }
            (Self::Map(left), Self::Map(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(name, left)| {
                        right.get(name).is_some_and(|right| Value::from_json(left).equals(&Value::from_json(right)))
                    })
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}
