//! The arguments of a call, checked against the limits of conditions.

use super::error::Error;
use bloomery_crds::canonical::MAX_DEPTH;
use serde_json::{Map, Value};

/// The most items of a list, and fields of an object, in the arguments.
pub const MAX_ITEMS: usize = 1_000;

/// The largest arguments, in bytes: the length of each string, and eight for each value.
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
    /// [`Error::Arguments`] names the limit that is exceeded.
    pub fn check(arguments: &'a Value) -> Result<Self, Error> {
        let Value::Object(fields) = arguments else {
            return Err(Error::Arguments("the arguments are not an object".into()));
        };
        let mut left = MAX_SIZE_BYTES;
        measure(arguments, MAX_DEPTH, &mut left)?;
        Ok(Self { fields })
    }

    pub(super) fn fields(self) -> &'a Map<String, Value> {
        self.fields
    }
}

fn measure(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
    let mut spend = |size: usize| match left.checked_sub(size) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(Error::Arguments(format!(
            "the arguments are larger than the {MAX_SIZE_BYTES} bytes that conditions accept"
        ))),
    };
    let count = |items: usize| {
        if depth == 0 {
            Err(Error::Arguments(format!(
                "the arguments are nested deeper than the {MAX_DEPTH} levels that conditions accept"
            )))
        } else if items > MAX_ITEMS {
            Err(Error::Arguments(format!(
                "a list of {items} items is longer than the {MAX_ITEMS} that conditions accept"
            )))
        } else {
            Ok(depth - 1)
        }
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(8),
        Value::String(text) => spend(8 + text.len()),
        Value::Array(items) => {
            spend(8)?;
            let depth = count(items.len())?;
            items.iter().try_for_each(|item| measure(item, depth, left))
        }
        Value::Object(fields) => {
            spend(8)?;
            let depth = count(fields.len())?;
            fields.iter().try_for_each(|(name, field)| {
                *left = left.saturating_sub(name.len());
                measure(field, depth, left)
            })
        }
    }
}
