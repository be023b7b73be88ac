//! Parses JSON and refuses duplicate keys.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::fmt;

/// The reason why a JSON text has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON, or is nested deeper than 128 levels.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// An object has a key twice. Parsers disagree about which value counts.
    #[error("the key {0:?} appears twice in one object")]
    DuplicateKey(String),
    /// A number would change its value if it were parsed and written again.
    #[error("the number {0} cannot be represented exactly")]
    InexactNumber(String),
    /// The value is nested deeper than this number of levels.
    #[error("it is nested more than {0} levels deep")]
    TooDeep(usize),
}

/// The start of the message of a parser error about a duplicate key. The key and `\u{1}` follow. [`parse`] recognises the message by this
/// prefix, because errors of `serde_json` carry only text.
const DUPLICATE: &str = "\u{1}duplicate:";

/// Parses a JSON text, and refuses an object that has a key twice.
pub(super) fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
        let message = error.to_string();
        match message.strip_prefix(DUPLICATE).and_then(|rest| rest.split_once('\u{1}')) {
            Some((key, _)) => Error::DuplicateKey(crate::text::bounded(key, 64)),
            None => Error::Syntax(message),
        }
    })
}

/// A value without duplicate keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    let Strict(value) = access.next_value()?;
                    entry.insert(value);
                }
                Entry::Occupied(entry) => {
                    return Err(A::Error::custom(format!("{DUPLICATE}{}\u{1}", entry.key())));
                }
            }
        }
        Ok(Value::Object(map))
    }
}
