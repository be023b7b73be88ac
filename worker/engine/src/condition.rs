//! Conditions of a Skill over the arguments of a call, in CEL (`docs/explanation/engine.md`, section 3).
//!
//! The crate `bloomery-cel` parses and evaluates them, with fixed limits of depth and work.

mod arguments;
mod defects;
mod error;
mod exclusive;
mod kinds;
mod known_values;
mod limits;
mod one_item;
mod required;
mod results;
mod shape;
mod signature;
mod sources;
mod unanchored;
mod vacuous;
mod written;

pub use arguments::{Arguments, MAX_ITEMS, MAX_SIZE_BYTES};
pub use bloomery_cel::{Dialect, Earlier, Facts, Macro, NoFacts, Node};
pub use defects::{Comparison, Defect, Examination, Form, ListUse, TextFault, WrittenValue, text_fault, value_fault};
pub use error::Error;
pub(crate) use error::without_result;
pub(crate) use kinds::Kinds;
pub(crate) use one_item::OneItem;
pub(crate) use results::of_output;
pub(crate) use shape::{Fields, Shape};
pub use signature::Signature;
pub(crate) use sources::Source;
pub use written::{Written, written};

use bloomery_cel::{Program, Scope};
use serde_json::Value;
use std::collections::BTreeSet;

/// The values that the conditions of one call read.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The arguments of the call, or the reason why conditions cannot read them.
    pub arguments: &'a Result<Arguments<'a>, Error>,
    /// The values of the conversation.
    pub facts: &'a dyn Facts,
}

/// A compiled condition.
///
/// Its evaluation ends, allocates little and cannot overflow the stack, whatever its text and the arguments. It is a pure
/// function of the arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    program: Program,
}

impl Condition {
    /// Compiles a condition about a call. A condition that has no result on any call is an error. Examples are unknown functions, map
    /// literals, and reserved words of CEL as names of arguments.
    pub fn compile(text: &str) -> Result<Self, Error> {
        Self::compile_as(text, Dialect::Call)
    }

    /// Compiles a condition of a dialect.
    pub fn compile_as(text: &str, dialect: Dialect) -> Result<Self, Error> {
        bloomery_cel::check(text).map_err(bloomery_cel::Error::from)?;
        Ok(Self { program: Program::parse_as(text, dialect)? })
    }

    /// Returns all errors of a text that [`Condition::compile_as`] refuses.
    pub fn faults(text: &str, dialect: Dialect) -> Vec<Error> {
        bloomery_cel::faults(text, dialect).into_iter().map(Error::from).collect()
    }

    /// Checks the arguments of a call, then evaluates the condition on them alone.
    pub fn evaluate(&self, arguments: &Value, declared_optional: &[String]) -> Result<bool, Error> {
        self.decide(Arguments::check(arguments)?, declared_optional, &NoFacts)
    }

    /// Evaluates the condition on arguments that were checked once for all conditions of a call.
    ///
    /// A missing argument is an error, even if the other side of an `||` is true. The error says whether the argument is in
    /// `declared_optional`.
    pub fn decide(
        &self,
        arguments: Arguments<'_>,
        declared_optional: &[String],
        facts: &dyn Facts,
    ) -> Result<bool, Error> {
        Ok(self.program.decide(Scope { variables: arguments.fields(), declared_optional, facts })?)
    }

    /// Returns the value that the condition has for every call for which it has a value, if there is only one.
    pub fn constant(&self) -> Option<bool> {
        self.program.constant()
    }

    /// Returns all parts of the condition.
    pub fn nodes(&self) -> Vec<&Node> {
        self.program.nodes()
    }

    /// Returns the arguments that the condition names, bare or as a field of `args`.
    pub fn arguments(&self) -> BTreeSet<&str> {
        self.program.variables()
    }
}

#[cfg(test)]
mod tests;
