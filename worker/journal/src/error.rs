//! The errors of the log. Their messages name the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// The reason that the log cannot be read or written. Each of these errors ends the epoch. No operation is retried, because a
/// failed sync may have lost the data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The worker may not write to the memory volume.
    #[error(
        "NotWritable: the memory volume is not writable at {}: {source}. Give the volume's directory to the pod's \
         group: use a storage class that honours fsGroup, or make the directory group-writable for the fsGroup of \
         the workers", .dir.display()
    )]
    NotWritable {
        /// The path that could not be written.
        dir: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The memory volume has no room left.
    #[error(
        "VolumeFull: the memory volume has no room left for {}: {source}. Free some space on the volume, or enlarge the claim \
         bloomery-memory; the Job's next attempt continues from the log", .path.display()
    )]
    Full {
        /// The path that could not be written.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The memory volume is read-only.
    #[error(
        "VolumeReadOnly: the memory volume is read-only at {}: {source}. Mount the volume writable. If the kernel has made it \
         read-only after a disk error, the log of the node shows the error", .path.display()
    )]
    ReadOnly {
        /// The path that could not be written.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The memory volume lacks a feature that keeps the log from forking.
    #[error(
        "the memory volume at {} has no {what} ({detail}), so two workers could write to one log. Use a volume that supports \
         this, such as ext4, xfs, NFS 3 or later, CephFS or EFS; a mount of an object store does not", .dir.display()
    )]
    Unsupported {
        /// The directory where the feature was tried.
        dir: PathBuf,
        /// The missing feature.
        what: &'static str,
        /// The observation that shows it.
        detail: String,
    },
    /// Something other than a worker changed the log, or a part of it is lost.
    #[error(
        "the log is broken at {}, line {line}: {reason}. The Job is not continued; restore the file from a backup of the \
         memory volume, or delete the Job and start another one", .file.display()
    )]
    Broken {
        /// The segment.
        file: PathBuf,
        /// The line in it, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The end of the log is lost.
    #[error(
        "the log at {} ends after {events} events, but the operator has acknowledged {known}: the missing events may include \
         calls that changed something. The Job is not continued; restore the last files of the log from a backup of the memory \
         volume, or delete the Job and start another one", .dir.display()
    )]
    Lost {
        /// The directory of the log.
        dir: PathBuf,
        /// The number of events in the log.
        events: u64,
        /// The number of events that the operator has acknowledged.
        known: u64,
    },
    /// Another attempt has taken the log over.
    #[error("another attempt has taken the log over: {} exists", .file.display())]
    Superseded {
        /// The segment that exists already.
        file: PathBuf,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// An event cannot be redacted.
    #[error("the event {event} cannot be recorded without a secret in it: {source}")]
    Redaction {
        /// The name of the event.
        event: &'static str,
        /// The cause.
        source: bloomery_redact::Error,
    },
    /// An event could not be written as JSON.
    #[error("an event cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The log was closed, or an earlier write failed.
    #[error("the log is closed, because this epoch has ended or an earlier write to the log failed")]
    Closed,
}

impl Error {
    /// Returns the error of a failed file operation on `path`. `action` completes the message "cannot {action} {path}".
    pub fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotWritable { dir: path.to_owned(), source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path: path.to_owned(), source },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned(), source },
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}
