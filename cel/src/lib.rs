//! The part of CEL (Common Expression Language) that conditions of Skills and validation rules of the CRDs use
//! (`docs/explanation/engine.md`, section 3).
//!
//! A condition decides on a call of a tool. Its variables are the arguments of the call, and `args` is the object of all
//! of them. It also reads [`Facts`]: named lists, the sources of values, and earlier calls. A validation rule of a CRD has the variable `self`.
//!
//! - [`check`] refuses a condition that is too long or too deep. It reads only the tokens.
//! - [`faults`] returns all errors of a condition at once.
//! - [`Program::parse`] builds a tree whose depth is bounded.
//! - [`Program::evaluate`] evaluates the tree with a bounded amount of work.
//!
//! All are pure functions of their input: no clock, no IO, no random order.
//!
//! The published CEL evaluator for Rust is not used: it parses with ANTLR 4, panics on some inputs, and bounds neither the
//! depth nor the work. Conditions come from tenants, and the operator and the worker must survive every one of them.

mod address;
mod constant;
mod dialect;
mod error;
mod evaluate;
mod facts;
mod faults;
mod limits;
mod names;
mod node;
pub mod number;
mod operate;
mod parse;
mod pattern;
mod token;
mod value;
mod work;

pub use address::{is_host, is_part_of_host};
pub use dialect::Dialect;
pub use error::Error;
pub use evaluate::Scope;
pub use facts::{Facts, NoFacts};
pub use faults::faults;
pub use limits::{Error as LimitError, MAX_DEPTH, MAX_LENGTH_BYTES, check};
pub use node::{Earlier, Function, Macro, Node, Operator};
pub use pattern::{Capital, Pattern};

use serde_json::{Map, Value};

/// Returns the text by which the source of a value is found: a string, or the decimal digits of a number. `None` for other values.
pub fn token_text(value: &Value) -> Option<String> {
    operate::token_text(&value::Value::from_json(value))
}

/// A parsed condition or validation rule.
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
        Self::parse_as(text, Dialect::Call)
    }

    /// Parses an expression of a dialect.
    ///
    /// # Errors
    /// Those of [`Program::parse`].
    pub fn parse_as(text: &str, dialect: Dialect) -> Result<Self, Error> {
        Ok(Self { root: parse::parse(text, dialect)? })
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// If an operation fails, the result is not true or false, or the work budget is spent. A missing variable is an error
    /// even if a later side of `&&` or `||` would decide.
    pub fn decide(&self, scope: Scope<'_>) -> Result<bool, Error> {
        evaluate::evaluate(&self.root, scope)
    }

    /// Evaluates the expression with variables alone. See [`Program::decide`].
    pub fn evaluate(&self, variables: &Map<String, Value>, declared_optional: &[String]) -> Result<bool, Error> {
        self.decide(Scope { variables, declared_optional, facts: &NoFacts })
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }
}

#[cfg(test)]
mod tests;
