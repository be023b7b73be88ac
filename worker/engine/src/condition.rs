//! Conditions over the arguments of a call, in CEL (`docs/explanation/engine.md`, section 3).
//!
//! The crate `cel` parses; what it parsed is lowered to the part of CEL that a condition needs, and evaluated
//! here on the JSON of the call as it stands. Its own evaluator has no budget, copies every value and walks maps
//! in random order: a Skill could stop a worker with it, or get two answers to one question.

mod arguments;
mod evaluate;
mod fault;
mod kinds;
mod lower;
mod named;
pub(crate) mod number;
mod operate;
mod parse;
mod value;
mod work;

pub use arguments::{Arguments, MAX_ITEMS, MAX_SIZE};
pub use fault::Fault;
pub use kinds::Doubt;
use lower::Node;
use serde_json::Value;

/// A compiled condition.
///
/// Evaluating it terminates, allocates little and cannot overflow the stack, whatever its text and the arguments:
/// its depth was bounded when it was compiled, its work is counted, and it is a pure function of the arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    node: Node,
}

impl Condition {
    /// Checks length, depth and nesting without parsing: what an operator may run for any tenant.
    pub fn check(text: &str) -> Result<(), Fault> {
        Ok(bloomery_crds::condition::check(text)?)
    }

    /// Compiles a condition. What cannot work on any call is refused here: unknown functions, map literals,
    /// words of CEL used as names of arguments.
    pub fn compile(text: &str) -> Result<Self, Fault> {
        Self::check(text)?;
        Ok(Self { node: parse::parse(text)? })
    }

    /// Evaluates the condition on the arguments of one call: checks them, then [`decides`](Self::decide).
    pub fn evaluate(&self, arguments: &Value, declared_optional: &[String]) -> Result<bool, Fault> {
        self.decide(Arguments::check(arguments)?, declared_optional)
    }

    /// Evaluates the condition on arguments that were checked once for all conditions of a call.
    ///
    /// An argument that the condition needs and the call lacks is an error even where `||` could do without it;
    /// `declared_optional` says of which of them the error tells so.
    pub fn decide(&self, arguments: Arguments<'_>, declared_optional: &[String]) -> Result<bool, Fault> {
        evaluate::truth(&self.node, arguments, declared_optional)
    }
}

#[cfg(test)]
mod tests;
