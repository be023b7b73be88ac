//! Conditions of a Skill over the arguments of a call, in CEL (`docs/explanation/engine.md`, section 3).
//!
//! The crate `bloomery-cel` parses and evaluates them, with fixed limits of depth and work.

mod arguments;
mod defects;
mod error;
mod kinds;
mod limits;
mod signature;

pub use arguments::{Arguments, MAX_ITEMS, MAX_SIZE_BYTES};
pub use defects::Defect;
pub use error::Error;
pub(crate) use kinds::Kinds;
pub use signature::Signature;

use bloomery_cel::Program;
use serde_json::Value;
use std::collections::BTreeSet;

/// A compiled condition.
///
/// Its evaluation ends, allocates little and cannot overflow the stack, whatever its text and the arguments. It is a pure
/// function of the arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    program: Program,
}

impl Condition {
    /// Compiles a condition. A condition that has no result on any call is an error. Examples are unknown functions, map
    /// literals, and reserved words of CEL as names of arguments.
    pub fn compile(text: &str) -> Result<Self, Error> {
        bloomery_cel::check(text).map_err(bloomery_cel::Error::from)?;
        Ok(Self { program: Program::parse(text)? })
    }

    /// Returns all errors of a text that [`Condition::compile`] refuses.
    pub fn faults(text: &str) -> Vec<Error> {
        bloomery_cel::faults(text).into_iter().map(Error::from).collect()
    }

    /// Checks the arguments of a call, then evaluates the condition on them.
    pub fn evaluate(&self, arguments: &Value, declared_optional: &[String]) -> Result<bool, Error> {
        self.decide(Arguments::check(arguments)?, declared_optional)
    }

    /// Evaluates the condition on arguments that were checked once for all conditions of a call.
    ///
    /// A missing argument is an error, even if the other side of an `||` is true. The error says whether the argument is in
    /// `declared_optional`.
    pub fn decide(&self, arguments: Arguments<'_>, declared_optional: &[String]) -> Result<bool, Error> {
        Ok(self.program.evaluate(arguments.fields(), declared_optional)?)
    }

    /// Returns the arguments that the condition names, bare or as a field of `args`.
    pub fn arguments(&self) -> BTreeSet<&str> {
        self.program.variables()
    }
}

#[cfg(test)]
mod tests;
