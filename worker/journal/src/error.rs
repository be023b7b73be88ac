//! Errors of the log, with the remedy for people.

use std::io;
use std::path::{Path, PathBuf};

/// Why the log cannot be read or written. Any of these ends the epoch. Nothing is retried, because a failed sync may have lost
/// the data.
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
        "VolumeFull: there is no room left on the memory volume for {}: {source}. Make room on it, or enlarge the claim \
         bloomery-memory; the Job goes on from its log with its next attempt", .path.display()
    )]
    Full {
        /// The path that could not be written.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The memory volume is read-only.
    #[error(
        "VolumeReadOnly: the memory volume is read-only at {}: {source}. Mount it writable; a file system that went \
         read-only by itself has met an error of its disk, which the node's log tells", .path.display()
    )]
    ReadOnly {
        /// The path that could not be written.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The memory volume lacks a feature that keeps the log from forking.
    #[error(
        "the memory volume at {} has no {what} ({detail}), so two workers could write one log. Use a volume that has \
         them: ext4, xfs, NFS 3 or later, CephFS or EFS; a mount of an object store does not", .dir.display()
    )]
    Unsupported {
        /// The directory that was tried.
        dir: PathBuf,
        /// The missing feature.
        what: &'static str,
        /// The observation that shows it.
        detail: String,
    },
    /// Something other than a worker changed the log, or a part of it is lost.
    #[error(
        "the log is broken at {}, line {line}: {reason}. It is not continued; restore the file from a backup of the \
         memory volume, or delete the Job and start another", .file.display()
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
        "the log at {} ends after {events} events, and {known} were acknowledged: what is gone may have been calls that \
         changed something. It is not continued; restore its last files from a backup of the memory volume, or delete \
         the Job and start another", .dir.display()
    )]
    Lost {
        /// The log.
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
    #[error("the event {event} cannot be told: {source}")]
    Secret {
        /// The name of the event.
        event: &'static str,
        /// The cause.
        source: bloomery_redact::Error,
    },
    /// An event could not be written as JSON.
    #[error("an event cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The log was used after a failure.
    #[error("the log has failed before, so this epoch is over")]
    Over,
}

impl Error {
    /// Returns the error of a failed file operation. The message of one that a person can repair says how.
    pub fn of(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotWritable { dir: path.to_owned(), source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path: path.to_owned(), source },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned(), source },
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}
