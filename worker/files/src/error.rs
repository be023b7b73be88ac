//! The error of a file or memory bank call.

use std::io::{self, ErrorKind};

/// The error of a file or memory bank call: a message for the model, which says what failed, on which file, and whether
/// anything was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// Returns the error of a file system operation that changed nothing. `action` is a participle, like `read`; `place` is
    /// inserted unchanged.
    pub(crate) fn io(action: &str, place: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            ErrorKind::NotFound => return Self(format!("There is no {place}; nothing was done.")),
            // Errors of the kernel have a number; errors of cap-std have none.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                "it leads out of the resource (a symbolic link to elsewhere)".to_owned()
            }
            ErrorKind::PermissionDenied => "the worker lacks permission".to_owned(),
            ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only".to_owned(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the file system is full".to_owned(),
            ErrorKind::NotADirectory => "a part of the path is no directory".to_owned(),
            ErrorKind::InvalidFilename => "the file system does not take such a name".to_owned(),
            _ => error.to_string(),
        };
        Self(format!("{place} cannot be {action}: {reason}; nothing was done."))
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.0
    }
}
