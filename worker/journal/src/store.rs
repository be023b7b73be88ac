//! The directory of one Job's log: immutable segments, each linked once to its name.

use super::files::{Files, remove_if_there};
use super::{Error, Segments, segment, volume};
use bloomery_engine::line::{Chain, Entry};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The directory in a slag's memory that holds the logs and records of its Jobs.
pub const JOBS: &str = "jobs";

/// The segments of one Job, as one worker reads and adds to them.
#[derive(Debug)]
pub struct Store<F> {
    segments: Segments<F>,
    writer: String,
    /// The second name of the last segment, which nobody needs any more.
    leftover: RefCell<Option<PathBuf>>,
    /// What the next segment is to be written to, where that was made ready.
    prepared: RefCell<Option<Prepared>>,
}

/// A file that will be a segment.
#[derive(Debug)]
struct Prepared {
    file: File,
    temporary: PathBuf,
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
        let segments = Segments::new(files, dir);
        let store =
            Self { segments, writer: writer.to_owned(), leftover: RefCell::default(), prepared: RefCell::default() };
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
        let temporary = self.temporary(first);
        let file = self.dir().join(segment::name(first));
        let unwritten = |error| Error::of("write the segment", &temporary, error);
        self.write(&temporary, content).map_err(unwritten)?;
        let mut linked = self.files().link(&temporary, &file);
        // Whoever has removed what was written has not taken the name: it may lie there long before it is needed. Nothing
        // was linked then, and a link stays exclusive however often it is tried.
        if linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.create(&temporary, content).map_err(unwritten)?;
            linked = self.files().link(&temporary, &file);
        }
        // Its removal need not be durable: leftovers are ignored. This worker may still want the name of one.
        self.remove_leftover();
        self.leftover.replace(Some(temporary));
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove_leftover();
                Err(Error::Superseded { file })
            }
            Err(error) => Err(Error::of("link the segment", &file, error)),
            Ok(()) => self.sync(),
        }
    }

    fn write(&self, temporary: &Path, content: &[u8]) -> io::Result<()> {
        match self.prepared.take() {
            Some(prepared) if prepared.temporary == temporary => {
                let filled = self.files().fill(prepared.file, content);
                filled.inspect_err(|_| self.give_up(temporary))
            }
            Some(_) | None => self.create(temporary, content),
        }
    }

    fn create(&self, temporary: &Path, content: &[u8]) -> io::Result<()> {
        self.files().create(temporary, content).inspect_err(|_| self.give_up(temporary))
    }

    /// Removes what nobody will ever read; on a full disk there is no room for it. Nothing depends on that.
    fn give_up(&self, temporary: &Path) {
        let _ = self.files().remove(temporary);
    }

    /// Does what can wait until there is nothing else to do: removes what the last segment has left, and makes ready what
    /// the next one, which begins with `first`, is written to. Nothing depends on it.
    pub fn tidy(&self, first: u64) {
        self.remove_leftover();
        let temporary = self.temporary(first);
        if self.prepared.borrow().is_none()
            // What is wrong is told when the segment is written.
            && let Ok(Some(file)) = self.files().prepare(&temporary)
        {
            self.prepared.replace(Some(Prepared { file, temporary }));
        }
    }

    /// Removes what is of no more use once nothing is added any more.
    pub fn close(&self) {
        self.remove_leftover();
        if let Some(prepared) = self.prepared.take() {
            self.give_up(&prepared.temporary);
        }
    }

    /// Removes what killed workers have left of segments up to `claimed`, which this worker has just made durable by
    /// [`Store::add`]. Nothing depends on it.
    ///
    /// It takes nothing from a worker that is frozen and let go later. What such a worker wants next is the first name
    /// behind segments that it has read whole, or has written. Those are the ones that this worker has read, so that the
    /// name of each of them, and that of the next one, up to `claimed`, is taken: durably, since the directory was synced
    /// before the claim, and again after. Whatever becomes of its temporary file, the link fails: the name exists, or, where
    /// the file has gone, there is nothing to be linked; written anew, it finds that the name exists. So it is superseded,
    /// or an error ends it (where the file goes once more between these two), and never takes a line for durable that
    /// is not. A file beyond `claimed` may belong to a worker that was faster, and stays.
    pub(super) fn clear(&self, claimed: u64) {
        for name in self.segments.names().unwrap_or_default() {
            if segment::of_temporary(&name).is_some_and(|(writer, seq)| writer != self.writer && seq <= claimed) {
                self.give_up(&self.dir().join(name));
            }
        }
    }

    fn temporary(&self, first: u64) -> PathBuf {
        self.dir().join(segment::temporary(&self.writer, first))
    }

    fn remove_leftover(&self) {
        if let Some(leftover) = self.leftover.take() {
            self.give_up(&leftover);
        }
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
        let is_own = |name: &&String| segment::of_temporary(name).is_some_and(|(writer, _)| writer == self.writer);
        for name in self.segments.names()?.iter().filter(is_own) {
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
