//! Errors of the memory and of the logs in it. Their messages use the terms of a local machine: no pods, no volumes.

use crate::error::Error;
use crate::text;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Converts an error of a Job's log into one of this library.
pub fn log_error(error: &bloomery_journal::Error) -> Error {
    match error {
        bloomery_journal::Error::NotWritable { dir, source } => not_writable(dir, source),
        bloomery_journal::Error::ReadOnly { path, source } => read_only(path, source),
        bloomery_journal::Error::Full { path, source } => full(path, source),
        bloomery_journal::Error::Io { path, source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
            Error::invalid(format!("{} is not in a directory: {source}", path.display()))
        }
        bloomery_journal::Error::Unsupported { dir, what, detail } => Error::invalid(format!(
            "the memory {} does not support {what} ({detail}). Without it, two processes could write the same log: name a \
             directory on a local disk with `options.memory`",
            text::directory(dir)
        )),
        bloomery_journal::Error::Broken { file, line, reason } => Error::failed(format!(
            "the log is broken at {}, line {line}: {reason}. The Job cannot be resumed",
            file.display()
        )),
        other => Error::failed(other.to_string()),
    }
}

/// Returns the error for a directory of the memory that cannot be created or used.
pub fn unusable(dir: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => not_writable(dir, error),
        io::ErrorKind::ReadOnlyFilesystem => read_only(dir, error),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(dir, error),
        _ => Error::invalid(format!(
            "the memory {} cannot be used: {error}. Name another one with `options.memory`",
            text::directory(dir)
        )),
    }
}

fn not_writable(dir: &Path, error: &io::Error) -> Error {
    // If the directory does not exist, the message names the owner of the nearest existing directory above it.
    let owner = dir.ancestors().find_map(|dir| fs::metadata(dir).ok()).map(|dir| dir.uid());
    let owner = owner.map(|uid| format!(" It belongs to user {uid}.")).unwrap_or_default();
    Error::invalid(format!(
        "the memory {} is not writable: {error}.{owner} It may be another tenant's: name one of yours with `options.memory`",
        text::directory(dir)
    ))
}

fn read_only(dir: &Path, error: &io::Error) -> Error {
    Error::invalid(format!(
        "the memory {} is read-only: {error}. Name another one with `options.memory`",
        text::directory(dir)
    ))
}

fn full(dir: &Path, error: &io::Error) -> Error {
    Error::invalid(format!(
        "no space left for the memory {}: {error}. Free some space, or name another memory with `options.memory`. The log is kept, \
         and the Job can be resumed from it",
        text::directory(dir)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use rstest::rstest;
    use std::path::PathBuf;

    #[rstest]
    #[case(io::ErrorKind::PermissionDenied, "It may be another tenant's")]
    #[case(io::ErrorKind::ReadOnlyFilesystem, "is read-only")]
    #[case(io::ErrorKind::StorageFull, "no space left")]
    #[case(io::ErrorKind::QuotaExceeded, "no space left")]
    #[case(io::ErrorKind::NotADirectory, "cannot be used")]
    fn a_memory_that_cannot_be_used_says_why_and_what_to_do(#[case] kind: io::ErrorKind, #[case] says: &str) {
        let error = unusable(Path::new("/no/such"), &kind.into());
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains(says) && error.message.contains("/no/such"), "{error}");
    }

    #[test]
    fn errors_of_the_log_do_not_use_the_terms_of_a_cluster() {
        let (dir, path) = (PathBuf::from("/m"), PathBuf::from("/m/jobs"));
        let source = || io::Error::from(io::ErrorKind::PermissionDenied);
        for error in [
            bloomery_journal::Error::NotWritable { dir: dir.clone(), source: source() },
            bloomery_journal::Error::Full { path: path.clone(), source: source() },
            bloomery_journal::Error::ReadOnly { path: path.clone(), source: source() },
            bloomery_journal::Error::Unsupported { dir, what: "hard links", detail: "Operation not permitted".into() },
        ] {
            let error = log_error(&error);
            assert_eq!(error.kind, ErrorKind::Invalid);
            for word in ["pod", "claim", "volume", "fsGroup"] {
                assert!(!error.message.contains(word), "{error}");
            }
        }
    }
}
