//! Arguments that are small enough to be ruled on.

use super::fault::Fault;
use bloomery_crds::canonical::MAX_DEPTH;
use serde_json::{Map, Value};

/// The most items that a list, or fields that an object, of the arguments may have.
pub const MAX_ITEMS: usize = 1_000;

/// The most bytes of arguments: texts as they are, and eight for each value.
pub const MAX_SIZE: usize = 64 * 1024;

/// The arguments of one call, within the limits. Made once, for all conditions of a call.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Takes arguments within [`MAX_ITEMS`], [`MAX_SIZE`] and the depth of canonical JSON.
    ///
    /// # Errors
    /// [`Fault::Arguments`] says which limit they pass.
    pub fn check(arguments: &'a Value) -> Result<Self, Fault> {
        let Value::Object(fields) = arguments else {
            return Err(Fault::Arguments("the arguments are not an object".into()));
        };
        let mut left = MAX_SIZE;
        measure(arguments, MAX_DEPTH, &mut left).map_err(Fault::Arguments)?;
        Ok(Self { fields })
    }

    pub(super) fn fields(self) -> &'a Map<String, Value> {
        self.fields
    }
}

fn measure(value: &Value, depth: usize, left: &mut usize) -> Result<(), String> {
    let mut spend = |size: usize| match left.checked_sub(size) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(format!("the arguments are larger than the {MAX_SIZE} bytes that conditions take")),
    };
    let count = |items: usize| {
        if depth == 0 {
            Err(format!("the arguments are nested deeper than the {MAX_DEPTH} levels that conditions take"))
        } else if items > MAX_ITEMS {
            Err(format!("a list of {items} items is longer than the {MAX_ITEMS} that conditions take"))
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
