//! The types of values in conditions.

use bloomery_crds::v1alpha1::ValueType;
use serde_json::Value;
use std::fmt;
use std::ops::{BitAnd, BitOr};

/// The set of types that a value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOL: Self = Self(1 << 1);
    pub(crate) const NUMBER: Self = Self(1 << 2);
    pub(crate) const TEXT: Self = Self(1 << 3);
    pub(crate) const LIST: Self = Self(1 << 4);
    pub(crate) const MAP: Self = Self(1 << 5);
    pub(crate) const BYTES: Self = Self(1 << 6);
    pub(crate) const ANY: Self = Self((1 << 7) - 1);

    /// Returns the types of a declared input. It may also be null: authors compare with null.
    pub(crate) fn declared(kind: ValueType) -> Self {
        Self::NULL
            | match kind {
                ValueType::String => Self::TEXT,
                ValueType::Number | ValueType::Integer => Self::NUMBER,
                ValueType::Boolean => Self::BOOL,
                ValueType::Array => Self::LIST,
                ValueType::Object => Self::MAP,
            }
    }

    /// Returns the types that a JSON Schema allows, and null.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        let union = |kinds: &mut dyn Iterator<Item = Self>| kinds.reduce(|all, kind| all | kind);
        let parts = ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array());
        let kinds = match (schema.get("type"), parts, schema.get("enum").and_then(Value::as_array)) {
            (Some(Value::String(name)), ..) => Some(Self::of_type_name(name)),
            (Some(Value::Array(names)), ..) => {
                union(&mut names.iter().filter_map(Value::as_str).map(Self::of_type_name))
            }
            (_, Some(parts), _) => union(&mut parts.iter().map(Self::of_schema)),
            (_, _, Some(values)) => union(&mut values.iter().map(Self::of_value)),
            _ => schema.get("const").map(Self::of_value),
        };
        Self::NULL | kinds.unwrap_or(Self::ANY)
    }

    fn of_type_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOL,
            "number" | "integer" => Self::NUMBER,
            "string" => Self::TEXT,
            "array" => Self::LIST,
            "object" => Self::MAP,
            _ => Self::ANY,
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOL,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::MAP,
        }
    }

    /// Returns every type instead of none: the part without a value is reported already.
    pub(crate) fn or_any(self) -> Self {
        if self.is_none() { Self::ANY } else { self }
    }

    /// Returns these types without others.
    pub(crate) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn may_be(self, other: Self) -> bool {
        !(self & other).is_none()
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kinds, &str); 6] = [
            (Kinds::BOOL, "a bool"),
            (Kinds::NUMBER, "a number"),
            (Kinds::TEXT, "a string"),
            (Kinds::LIST, "a list"),
            (Kinds::MAP, "an object"),
            (Kinds::BYTES, "bytes"),
        ];
        if *self == Self::NULL {
            return f.write_str("null");
        }
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        // Null is not named beside other types: every declared input may be null.
        let names: Vec<&str> = NAMES.into_iter().filter(|(kind, _)| self.may_be(*kind)).map(|(_, name)| name).collect();
        f.write_str(&names.join(" or "))
    }
}
