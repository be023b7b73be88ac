//! The errors of conditions.

/// The reason why a condition cannot be compiled or has no result. A condition with an error never counts as true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The condition is invalid, or has no result for the arguments.
    #[error(transparent)]
    Cel(#[from] bloomery_cel::Error),
    /// The arguments are beyond a limit, or not an object.
    #[error("{0}")]
    Arguments(String),
}

/// Returns the sentence about a condition without a result. It begins with the reason of the rule, if the rule has one, and otherwise
/// quotes the condition.
pub(crate) fn without_result(text: &str, reason: Option<&str>, error: &Error) -> String {
    match reason {
        Some(reason) => format!("{reason} (the condition of this rule has no result: {error})"),
        None => format!("the condition {text:?} has no result: {error}"),
    }
}
