//! The directory of one Job's log: immutable segments, each linked once to its name.

use super::files::{Files, remove_if_there};
use super::{Error, Segments, segment, volume};
use bloomery_engine::line::{Chain, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// The directory in a slag's memory that holds the logs and records of its Jobs.
pub const JOBS: &str = "jobs";

/// The segments of one Job, as one worker reads and adds to them.
#[derive(Debug)]
pub struct Store<F> {
    segments: Segments<F>,
    writer: String,
}

impl<F: Files> Store<F> {
    /// Opens the log of a Job in `memory`, making it where it does not exist. `writer` is unique to this worker:
    /// the UID of its pod.
    ///
    /// # Errors
    /// If the volume is not writable or lacks hard links or exclusive creation, or either name is no file name.
    pub fn open(files: F, memory: &Path, run_key: &str, writer: &str) -> Result<Self, Error> {
        for name in [run_key, writer] {
            check_name(name)?;
        }
        let jobs = memory.join(JOBS);
        let dir = jobs.join(run_key);
        for (parent, child) in [(memory, &jobs), (&jobs, &dir)] {
            files.create_dir(child).map_err(|error| Error::of("create the directory", child, error))?;
            files.sync_dir(parent).map_err(|error| Error::of("sync the directory", parent, error))?;
        }
        let store = Self { segments: Segments::new(files, dir), writer: writer.to_owned() };
        store.remove_own_leftovers()?;
        volume::check(store.files(), store.dir(), writer)?;
        Ok(store)
    }

    /// The path of the log in the memory, for reports.
    pub fn path(&self) -> String {
        let key = self.dir().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("{JOBS}/{key}")
    }

    /// The file layer, for what is kept beside the log.
    pub fn files(&self) -> &F {
        self.segments.files()
    }

    fn dir(&self) -> &Path {
        self.segments.dir()
    }

    /// Reads on from where `chain` stands to the end of the log; see [`Segments::read`].
    pub fn read(&self, chain: &mut Chain, each: impl FnMut(&Entry)) -> Result<(), Error> {
        self.segments.read(chain, each)
    }

    /// Adds a segment, durable when this returns.
    ///
    /// # Errors
    /// [`Error::Superseded`] if its name exists, even where that is this worker's own link whose reply was lost.
    /// After any other error the segment may exist or not, and nothing may be done that needs it.
    pub fn add(&self, first: u64, content: &[u8]) -> Result<(), Error> {
        let temporary = self.dir().join(format!(".tmp-{}-{first}", self.writer));
        let file = self.dir().join(segment::name(first));
        self.files().create(&temporary, content).map_err(|error| Error::of("write the segment", &temporary, error))?;
        let linked = self.files().link(&temporary, &file);
        if let Err(error) = &linked
            && error.kind() == io::ErrorKind::AlreadyExists
        {
            // What is left over does no harm, and this worker may still want the name of the file.
            let _ = self.files().remove(&temporary);
            return Err(Error::Superseded { file });
        }
        linked.map_err(|error| Error::of("link the segment", &file, error))?;
        self.sync()?;
        // Its removal need not be durable: leftovers are ignored.
        let _ = self.files().remove(&temporary);
        Ok(())
    }

    /// A log that ends too early.
    pub(super) fn lost(&self, events: u64, known: u64) -> Error {
        Error::Lost { dir: self.dir().to_owned(), events, known }
    }

    /// Makes durable the names of all segments that were read.
    pub fn sync(&self) -> Result<(), Error> {
        self.files().sync_dir(self.dir()).map_err(|error| Error::of("sync the directory", self.dir(), error))
    }

    fn remove_own_leftovers(&self) -> Result<(), Error> {
        let own = format!(".tmp-{}-", self.writer);
        for name in self.segments.names()?.iter().filter(|name| name.starts_with(&own)) {
            let file = self.dir().join(name);
            remove_if_there(self.files(), &file).map_err(|error| Error::of("remove a leftover", &file, error))?;
        }
        Ok(())
    }
}

// Both names come from the operator; a path in one of them would leave the slag's memory.
fn check_name(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "letters, digits and '-' are allowed, 1 to 64 of them");
    Err(Error::Io { action: "use as a file name", path: PathBuf::from(name), source })
}
