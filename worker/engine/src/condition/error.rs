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
