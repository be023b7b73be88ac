//! The arguments of a call, checked against the limits of conditions.

use super::error::Error;
use bloomery_crds::canonical::MAX_DEPTH;
use serde_json::{Map, Value};

/// The most items of a list, and fields of an object, in the arguments.
pub const MAX_ITEMS: usize = 1_000;

/// The largest arguments, in bytes. Each string and each field's name counts with its length, and each value with 8 more.
pub const MAX_SIZE_BYTES: usize = 64 * 1024;

/// The arguments of one call, within the limits. Checked once for all conditions of the call.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Checks that arguments are within [`MAX_ITEMS`], [`MAX_SIZE_BYTES`] and the depth of canonical JSON.
    ///
    /// # Errors
    /// [`Error::Arguments`], if a limit is exceeded or the arguments are not an object.
    pub fn check(arguments: &'a Value) -> Result<Self, Error> {
        let Value::Object(fields) = arguments else {
            return Err(Error::Arguments("the arguments are not an object".into()));
        };
        let mut bytes_left = MAX_SIZE_BYTES;
        check_limits(arguments, MAX_DEPTH, &mut bytes_left)?;
        Ok(Self { fields })
    }

    /// Returns an argument.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.fields.get(name)
    }

    pub(super) fn fields(self) -> &'a Map<String, Value> {
        self.fields
    }
}

/// Checks a value, below which `levels_left` more levels are allowed. Subtracts its size from `bytes_left`.
fn check_limits(value: &Value, levels_left: usize, bytes_left: &mut usize) -> Result<(), Error> {
    let mut spend = |size: usize| match bytes_left.checked_sub(size) {
        Some(rest) => {
            *bytes_left = rest;
            Ok(())
        }
        None => Err(Error::Arguments(format!(
            "the arguments are larger than the {MAX_SIZE_BYTES} bytes that conditions accept"
        ))),
    };
    // Returns the levels that may be below the items of the value.
    let descend = |items: usize| {
        if levels_left == 0 {
            Err(Error::Arguments(format!(
                "the arguments are nested deeper than the {MAX_DEPTH} levels that conditions accept"
            )))
        } else if items > MAX_ITEMS {
            Err(Error::Arguments(format!(
                "a list of {items} items is longer than the {MAX_ITEMS} that conditions accept"
            )))
        } else {
            Ok(levels_left - 1)
        }
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(8),
        Value::String(text) => spend(8 + text.len()),
        Value::Array(items) => {
            spend(8)?;
            let levels_left = descend(items.len())?;
            items.iter().try_for_each(|item| check_limits(item, levels_left, bytes_left))
        }
        Value::Object(fields) => {
            spend(8)?;
            let levels_left = descend(fields.len())?;
            fields.iter().try_for_each(|(name, field)| {
                // A name that is too long leaves no byte for the value, so the check of the value fails.
                *bytes_left = bytes_left.saturating_sub(name.len());
                check_limits(field, levels_left, bytes_left)
            })
        }
    }
}
