//! Conditions over the arguments of a call, in CEL (`engine.md`, section 3).
//!
//! The crate `cel` parses; what it parsed is lowered to the part of CEL that a condition needs, and evaluated
//! here on the JSON of the call as it stands. Its own evaluator has no budget, copies every value and walks maps
//! in random order: a Skill could stop a worker with it, or get two answers to one question.

mod arguments;
mod evaluate;
mod kinds;
mod lower;
mod named;
pub(crate) mod number;
mod operate;
mod parse;
mod value;
mod work;

pub use arguments::{Arguments, MAX_ITEMS, MAX_SIZE};
pub use kinds::Doubt;
use lower::Node;
use serde_json::Value;

/// Why a condition could not be compiled, or gave no answer. Whoever asked must not take it for a yes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Refused on its tokens.
    #[error(transparent)]
    Tokens(#[from] bloomery_crds::condition::Fault),
    /// Not CEL.
    #[error("not valid CEL: {0}")]
    Syntax(String),
    /// CEL, but not what a condition can use.
    #[error("{0}")]
    Unsupported(String),
    /// The arguments are too large to be ruled on.
    #[error("{0}")]
    Arguments(String),
    /// The call lacks an argument that the condition needs.
    #[error("the call has no argument {name:?}{}", if *optional { ", which its tool declares optional: guard it with has()" } else { "" })]
    Missing {
        /// The argument.
        name: String,
        /// Whether the tool declares it optional.
        optional: bool,
    },
    /// An operation failed: of the wrong types, out of range, or on a field that is not there.
    #[error("{0}")]
    Evaluation(String),
    /// The evaluation took more work than one condition may.
    #[error("the condition takes too much work on these arguments")]
    Exhausted,
    /// The result is something other than true or false.
    #[error("the result is {0}, not true or false")]
    NotBool(&'static str),
}

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
