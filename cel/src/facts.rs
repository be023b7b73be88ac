//! The values that a condition reads beside the arguments of a call.

use serde_json::{Map, Value};

/// The values that a condition reads beside the arguments of a call. By default, there are none.
pub trait Facts {
    /// Returns a named list of the policy.
    fn list(&self, _name: &str) -> Option<&[Value]> {
        None
    }

    /// Returns whether people wrote a value, as a whole token.
    fn is_from_user(&self, _value: &str) -> bool {
        false
    }

    /// Returns whether a value is in a result of a tool.
    fn is_from_tool(&self, _value: &str, _tool: &str) -> bool {
        false
    }

    /// Returns the arguments of the earlier calls of a tool that were started.
    ///
    /// # Errors
    /// A sentence, if not all of them are known.
    fn calls(&self, _tool: &str) -> Result<Vec<&Value>, String> {
        Ok(Vec::new())
    }

    /// Returns the results of the earlier calls of a tool that completed.
    ///
    /// # Errors
    /// A sentence, if not all of them are known.
    fn results(&self, _tool: &str) -> Result<Vec<&Value>, String> {
        Ok(Vec::new())
    }

    /// Returns the result of the call, if it has one.
    fn result(&self) -> Option<&Value> {
        None
    }

    /// Returns the arguments and the result of an earlier step of the workflow, if the step is done.
    fn step(&self, _name: &str) -> Option<&Map<String, Value>> {
        None
    }
}

/// No facts: validation rules and simple conditions need none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFacts;

impl Facts for NoFacts {}
