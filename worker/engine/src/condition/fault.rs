//! The reason why a condition gives no answer.

/// The reason why a condition could not be compiled, or gave no answer. A caller must not take it for a yes.
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
