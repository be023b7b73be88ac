//! The error of a file or memory bank call.

use std::io::{self, ErrorKind};

/// The error of a file or memory bank call. It is a message for the model: the failure, its file, and whether anything was
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);

impl Error {
    /// Returns the error of a failed file system operation that changed nothing. `action` is a participle, such as `read`. `file`
    /// is already formatted for the message.
    pub(crate) fn io(action: &str, file: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            ErrorKind::NotFound => return Self(format!("{file} does not exist. Nothing was changed.")),
            // The kernel's errors have a number. Those of cap-std and of this crate do not.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                "a symbolic link on the path leads out of the resource".to_owned()
            }
            ErrorKind::PermissionDenied => "the worker lacks permission".to_owned(),
            ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only".to_owned(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the file system is full".to_owned(),
            ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
            ErrorKind::InvalidFilename => "the file system does not allow this name".to_owned(),
            _ => error.to_string(),
        };
        Self(format!("{file} cannot be {action}: {reason}. Nothing was changed."))
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
