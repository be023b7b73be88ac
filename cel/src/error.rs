//! The errors of parsing and evaluation.

use crate::limits::Error as LimitError;

/// The reason why an expression cannot be parsed or has no result. A caller must not treat it as true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is beyond a limit, or has an invalid token.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The text is not CEL.
    #[error("not valid CEL: {message} (line {line}, column {column})")]
    Syntax {
        /// The expected and the found token.
        message: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// The text is CEL, but uses a part that is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// A variable that the expression needs is missing.
    #[error("the call has no argument {name:?}{}", if *optional { ", which its tool declares optional: guard it with has()" } else { "" })]
    Missing {
        /// The name of the variable.
        name: String,
        /// True if the variable is declared as optional.
        optional: bool,
    },
    /// An operation failed: wrong types, a result out of range, or a missing field.
    #[error("{0}")]
    Evaluation(String),
    /// The work budget of one evaluation is spent.
    #[error("the condition takes too much work on these arguments")]
    Exhausted,
    /// The result is not true or false.
    #[error("the result is {0}, not true or false")]
    NotBool(&'static str),
}
