//! The mark of a process that drives a Job, for the other processes of this machine.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;

/// The mark that this process drives a Job: a lock on the directory of the Job's log. The system removes it when the process ends. It
/// protects nothing, because the log cannot fork: it only shows other processes that the Job is not interrupted.
#[derive(Debug)]
pub struct DriveMark {
    /// Keeps the lock.
    _locked: File,
}

impl DriveMark {
    /// Marks the Job with the log in `dir`. Returns `None` if the Job has a mark already, or the directory cannot be locked.
    pub fn set(dir: &Path) -> Option<Self> {
        let locked = File::open(dir).ok()?;
        flock(&locked, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { _locked: locked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_mark_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let mark = DriveMark::set(dir.path());
        assert!(mark.is_some() && DriveMark::set(dir.path()).is_none());
        drop(mark);
        assert!(DriveMark::set(dir.path()).is_some());
        assert!(DriveMark::set(&dir.path().join("none")).is_none());
    }
}
