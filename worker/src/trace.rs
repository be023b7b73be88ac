//! Writes the trace of a Job to its skill directory, as `logs/<key>.log`. The trace has the output of the Job's workers: the
//! conversation and the diagnostics. It remains after their pods are deleted.
//!
//! The trace is for people. It keeps the last lines of each Job, and the last Jobs of each skill directory. No component reads it, so
//! a trace that cannot be written does not fail the Job.

use bloomery_journal::files::{Disk, keep_newest};
use bloomery_redact::plain_file;
use rustix::fs::renameat;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the traces' directory in a skill directory.
pub const DIR: &str = "logs";

/// The size at which a trace file is rotated, in bytes. One rotated file is kept.
const MAX_BYTES: u64 = 512 * 1024;

/// The maximum number of trace files in a skill directory. The least recently written are removed first.
const MAX_FILES: usize = 200;

/// A trace. It discards its input until it is opened. All clones share one trace.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Option<OpenTrace>>>);

#[derive(Debug)]
struct OpenTrace {
    dir: File,
    key: String,
    file: File,
    bytes: u64,
}

impl Trace {
    /// Opens the trace of the Job with the run key `key`, in the skill directory `skill_dir`. Output is appended to it.
    ///
    /// # Errors
    /// If the skill directory cannot be written, or the directory or the trace is a symbolic link or another special file.
    pub fn open(&self, skill_dir: &Path, key: &str) -> io::Result<()> {
        let dir = skill_dir.join(DIR);
        fs::create_dir_all(&dir)?;
        let opened = plain_file::open_dir(&dir)?;
        // Leaves room for the two files of this Job.
        keep_newest(&Disk, &dir, MAX_FILES - 2)?;
        let opened = OpenTrace::new(opened, key.to_owned())?;
        *self.slot() = Some(opened);
        Ok(())
    }

    /// Returns a writer that writes to both `out` and the trace.
    pub fn tee<W>(&self, out: W) -> Tee<W> {
        Tee { out, trace: self.clone() }
    }

    fn write(&self, bytes: &[u8]) {
        let mut slot = self.slot();
        // The error cannot be logged, because diagnostics are written to the trace too.
        if slot.as_mut().is_some_and(|open| open.write(bytes).is_err()) {
            *slot = None;
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<OpenTrace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTrace {
    fn new(dir: File, key: String) -> io::Result<Self> {
        let name = format!("{key}.log");
        let mut file = plain_file::open_to_append(&dir, &name)?;
        // A file with a second hard link may belong to a copy of the memory, so the worker does not change it.
        if file.metadata()?.nlink() > 1 {
            rotate(&dir, &key)?;
            file = plain_file::open_to_append(&dir, &name)?;
        }
        let bytes = file.metadata()?.len();
        Ok(Self { dir, key, file, bytes })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes >= MAX_BYTES {
            rotate(&self.dir, &self.key)?;
            *self = Self::new(self.dir.try_clone()?, self.key.clone())?;
        }
        self.file.write_all(bytes)?;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Renames the trace file of a Job, and replaces the file that was rotated before.
fn rotate(dir: &File, key: &str) -> io::Result<()> {
    Ok(renameat(dir, format!("{key}.log"), dir, format!("{key}.1.log"))?)
}

/// Writes to an output and to the trace. Only the output can fail.
#[derive(Debug)]
pub struct Tee<W> {
    out: W,
    trace: Trace,
}

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Writes to the trace first, because the output may be closed.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.trace.write(bytes);
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    fn names(skill_dir: &Path) -> Vec<String> {
        let names = fs::read_dir(skill_dir.join(DIR)).unwrap();
        let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn output_is_traced_once_the_trace_is_open() {
        let memory = tempfile::tempdir().unwrap();
        let trace = Trace::default();
        let mut out = trace.tee(Vec::new());
        out.write_all(b"before\n").unwrap();
        trace.open(memory.path(), "k-1").unwrap();
        out.write_all(b"one\n").unwrap();
        Trace::default().open(memory.path(), "k-2").unwrap();
        // Another worker of the Job.
        let next = Trace::default();
        next.open(memory.path(), "k-1").unwrap();
        next.tee(io::sink()).write_all(b"two\n").unwrap();
        assert_eq!(out.out, b"before\none\n");
        assert_eq!(fs::read_to_string(memory.path().join("logs/k-1.log")).unwrap(), "one\ntwo\n");
        assert_eq!(names(memory.path()), ["k-1.log", "k-2.log"]);
    }

    #[test]
    fn a_long_trace_keeps_its_last_lines() {
        let memory = tempfile::tempdir().unwrap();
        let trace = Trace::default();
        trace.open(memory.path(), "k-1").unwrap();
        let mut out = trace.tee(io::sink());
        let line = "x".repeat(1023) + "\n";
        for _ in 0..2000 {
            out.write_all(line.as_bytes()).unwrap();
        }
        out.write_all(b"the last\n").unwrap();
        assert_eq!(names(memory.path()), ["k-1.1.log", "k-1.log"]);
        let size = |name: &str| fs::metadata(memory.path().join(DIR).join(name)).unwrap().len();
        assert!(size("k-1.log") <= MAX_BYTES + 1024 && size("k-1.1.log") <= MAX_BYTES + 1024);
        assert!(fs::read_to_string(memory.path().join("logs/k-1.log")).unwrap().ends_with("the last\n"));
    }

    #[test]
    fn the_traces_of_the_oldest_jobs_are_removed() {
        let memory = tempfile::tempdir().unwrap();
        for at in 0..MAX_FILES + 5 {
            Trace::default().open(memory.path(), &format!("k-{at}")).unwrap();
        }
        assert!(names(memory.path()).len() <= MAX_FILES);
        assert!(names(memory.path()).contains(&format!("k-{}.log", MAX_FILES + 4)));
    }

    #[test]
    fn a_trace_that_cannot_be_written_does_not_fail_the_output() {
        let memory = tempfile::tempdir().unwrap();
        let trace = Trace::default();
        trace.open(memory.path(), "k-1").unwrap();
        fs::remove_dir_all(memory.path().join(DIR)).unwrap();
        let mut out = trace.tee(Vec::new());
        for _ in 0..2 {
            out.write_all("x".repeat(usize::try_from(MAX_BYTES).unwrap()).as_bytes()).unwrap();
        }
        out.write_all(b"end").unwrap();
        assert!(out.out.ends_with(b"end"));
        fs::write(memory.path().join("file"), "").unwrap();
        assert!(Trace::default().open(&memory.path().join("file"), "k").is_err());
    }

    #[test]
    fn a_trace_with_a_second_hard_link_is_not_changed() {
        let (memory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (log, copied) = (memory.path().join("logs/k-1.log"), copy.path().join("k-1.log"));
        Trace::default().open(memory.path(), "k-1").unwrap();
        fs::write(&log, "one\n").unwrap();
        fs::hard_link(&log, &copied).unwrap();
        let trace = Trace::default();
        trace.open(memory.path(), "k-1").unwrap();
        trace.tee(io::sink()).write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&copied).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(&log).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(memory.path().join("logs/k-1.1.log")).unwrap(), "one\n");
    }

    /// Opening a named pipe without a reader would block the run, and a link may lead to any file.
    #[test]
    fn a_special_file_in_place_of_the_trace_is_an_error() {
        let (memory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let logs = memory.path().join(DIR);
        fs::create_dir(&logs).unwrap();
        let file = outside.path().join("file");
        fs::write(&file, "not a trace").unwrap();
        mknodat(CWD, logs.join("pipe.log"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink(&file, logs.join("link.log")).unwrap();
        for key in ["pipe", "link"] {
            let error = Trace::default().open(memory.path(), key).unwrap_err().to_string();
            assert_eq!(error, format!("`{key}.log` is not a regular file"));
        }
        fs::remove_dir_all(&logs).unwrap();
        std::os::unix::fs::symlink(outside.path(), &logs).unwrap();
        let error = Trace::default().open(memory.path(), "k-1").unwrap_err().to_string();
        assert!(error.contains("logs` is not a directory"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "not a trace");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}
