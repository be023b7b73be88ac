//! What a file system refuses, as sentences for the model.

use std::io::{Error, ErrorKind};

/// A sentence of what could not be done. `what` is `read`, `write` or the like; `place` is shown as it is.
pub(crate) fn sentence(what: &str, place: &str, error: &Error) -> String {
    let why = match error.kind() {
        ErrorKind::NotFound => return format!("There is no {place}; nothing was done."),
        // The kernel's own refusal has a number; what the capability refuses has none.
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            "it leads out of the resource (a symbolic link to elsewhere)".to_owned()
        }
        ErrorKind::PermissionDenied => "the worker's user has no right to".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the file system is full".to_owned(),
        ErrorKind::NotADirectory => "a part of the path is no directory".to_owned(),
        ErrorKind::InvalidFilename => "the file system does not take such a name".to_owned(),
        _ => error.to_string(),
    };
    format!("{place} cannot be {what}: {why}; nothing was done.")
}
