//! The errors of the memory bank.

use crate::Error;

/// The error of a write to the memory bank.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Nothing was written.
    #[error(transparent)]
    Unwritten(#[from] Error),
    /// The outcome is unknown: the note may have been written.
    #[error(transparent)]
    Unknown(Error),
}

/// Returns the message for a bank that cannot be opened or listed.
pub(super) fn bank_error(error: &std::io::Error) -> Error {
    format!("The memory bank cannot be opened: {error}. Nothing was changed.").into()
}
