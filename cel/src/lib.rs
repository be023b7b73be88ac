//! The part of CEL (Common Expression Language) that conditions of Skills and validation rules of the CRDs use
//! (`docs/explanation/engine.md`, section 3).
//!
//! [`check`] limits the length, depth and nesting of a condition without recursion. [`Program::parse`] builds a tree whose
//! depth is bounded, and [`Program::evaluate`] walks it with a bounded amount of work. Both are pure functions of their
//! input: no clock, no IO, no random order.

mod error;
mod evaluate;
mod limits;
mod names;
mod node;
pub mod number;
mod operate;
mod parse;
mod token;
mod value;
mod work;

pub use error::Error;
pub use limits::{Error as LimitError, MACROS, MAX_DEPTH, MAX_LENGTH_BYTES, check};
pub use node::{Function, Macro, Node, Operator};

use serde_json::{Map, Value};

/// A parsed expression that is true or false.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    root: Node,
}

impl Program {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is not CEL, is nested too deep, or uses a part of CEL that is not supported.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { root: parse::parse(text)? })
    }

    /// Evaluates the expression with `variables`, which are also the fields of `args`.
    ///
    /// # Errors
    /// If an operation fails, the result is not true or false, or the work budget is spent. A missing variable is an error
    /// even if a later side of `&&` or `||` would decide. The error says if `declared_optional` has the variable.
    pub fn evaluate(&self, variables: &Map<String, Value>, declared_optional: &[String]) -> Result<bool, Error> {
        evaluate::evaluate(&self.root, variables, declared_optional)
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }
}

#[cfg(test)]
mod tests;
