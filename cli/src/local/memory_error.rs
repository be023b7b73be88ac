//! Messages for failures of the memory and of the logs in it, in the terms of a machine without an operator.

use crate::exit::Trouble;
use bloomery_journal::Error;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the message for an error of a Job's log.
pub fn log_error(error: &Error) -> Trouble {
    match error {
        Error::NotWritable { dir, source } => not_writable(dir, source),
        Error::ReadOnly { path, source } => read_only(path, source),
        Error::Full { path, source } => full(path, source),
        Error::Io { path, source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
            Trouble::usage(format!("{} is not in a directory: {source}", path.display()))
        }
        Error::Unsupported { dir, what, detail } => Trouble::usage(format!(
            "the memory {} does not support {what} ({detail}), so two processes could write the same log: name a directory \
             on a local disk with --memory",
            dir.display()
        )),
        Error::Broken { file, line, reason } => Trouble::failed(format!(
            "the log is broken at {}, line {line}: {reason}. The Job cannot be resumed",
            file.display()
        )),
        other => Trouble::failed(other.to_string()),
    }
}

/// Returns the message for a directory of the memory that cannot be created or used.
pub fn unusable(dir: &Path, error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::PermissionDenied => not_writable(dir, error),
        io::ErrorKind::ReadOnlyFilesystem => read_only(dir, error),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(dir, error),
        _ => Trouble::usage(format!("the memory cannot be used: {}: {error}", dir.display())),
    }
}

fn not_writable(dir: &Path, error: &io::Error) -> Trouble {
    // A directory that does not exist yet would belong to the owner of the nearest one above it.
    let owner = dir.ancestors().find_map(|dir| fs::metadata(dir).ok()).map(|dir| dir.uid());
    let owner = owner.map(|uid| format!(" It belongs to user {uid}.")).unwrap_or_default();
    Trouble::usage(format!(
        "the memory {} is not writable: {error}.{owner} It may be another tenant's: name one of yours with --memory",
        dir.display()
    ))
}

fn read_only(dir: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!("the memory {} is read-only: {error}. Name another one with --memory", dir.display()))
}

fn full(dir: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!(
        "no space left for the memory {}: {error}. Free some space, or name another memory with --memory. The log is kept, \
         and the Job can be resumed from it",
        dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use rstest::rstest;
    use std::path::PathBuf;

    #[rstest]
    #[case(io::ErrorKind::PermissionDenied, "It may be another tenant's")]
    #[case(io::ErrorKind::ReadOnlyFilesystem, "is read-only")]
    #[case(io::ErrorKind::StorageFull, "no space left")]
    #[case(io::ErrorKind::QuotaExceeded, "no space left")]
    #[case(io::ErrorKind::NotADirectory, "cannot be used")]
    fn a_memory_that_cannot_be_used_says_why_and_what_to_do(#[case] kind: io::ErrorKind, #[case] says: &str) {
        let trouble = unusable(Path::new("/no/such"), &kind.into());
        assert_eq!(trouble.exit, Exit::Usage);
        assert!(trouble.message.contains(says) && trouble.message.contains("/no/such"), "{trouble}");
    }

    #[test]
    fn errors_of_the_log_do_not_use_the_terms_of_a_cluster() {
        let (dir, path) = (PathBuf::from("/m"), PathBuf::from("/m/jobs"));
        let source = || io::Error::from(io::ErrorKind::PermissionDenied);
        for error in [
            Error::NotWritable { dir: dir.clone(), source: source() },
            Error::Full { path: path.clone(), source: source() },
            Error::ReadOnly { path: path.clone(), source: source() },
            Error::Unsupported { dir, what: "hard links", detail: "Operation not permitted".into() },
        ] {
            let trouble = log_error(&error);
            assert_eq!(trouble.exit, Exit::Usage);
            for word in ["pod", "claim", "volume", "fsGroup"] {
                assert!(!trouble.message.contains(word), "{trouble}");
            }
        }
    }
}
