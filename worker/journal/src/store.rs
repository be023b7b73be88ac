//! The directory of one Job's log: immutable segments, each linked once to its name.

use super::files::{Files, remove_if_there};
use super::{Error, Segments, segment, volume};
use bloomery_engine::line::{Chain, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the logs and records of Jobs, in a skill directory.
pub const JOBS: &str = "jobs";

/// The number of directories above that of a log whose entries the worker may have created: [`JOBS`] and the skill directory.
const PARENTS: usize = 2;

/// The segments of one Job, as one worker reads and adds to them.
#[derive(Debug)]
pub struct Store<F> {
    segments: Segments<F>,
    writer: String,
}

impl<F: Files> Store<F> {
    /// Opens the log of a Job in a skill directory, and creates the directory of the log if it is missing. It is durable after
    /// [`Store::sync_parents`]. `writer` is unique to this worker: the UID of its pod.
    ///
    /// # Errors
    /// If the volume is not writable, if it lacks hard links or exclusive creation, or if `run_key` or `writer` is not a
    /// valid file name.
    pub fn open(files: F, skill_dir: &Path, run_key: &str, writer: &str) -> Result<Self, Error> {
        for name in [run_key, writer] {
            check_name(name)?;
        }
        let jobs = skill_dir.join(JOBS);
        let dir = jobs.join(run_key);
        for child in [&jobs, &dir] {
            files.create_dir(child).map_err(|error| Error::from_io("create the directory", child, error))?;
        }
        let store = Self { segments: Segments::new(files, dir), writer: writer.to_owned() };
        store.remove_own_leftovers()?;
        volume::check(store.files(), store.dir(), writer)?;
        Ok(store)
    }

    /// Returns the path of the log within the skill directory, for reports.
    pub fn path(&self) -> String {
        let key = self.dir().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("{JOBS}/{key}")
    }

    /// Returns the file layer, for the files beside the log.
    pub fn files(&self) -> &F {
        self.segments.files()
    }

    fn dir(&self) -> &Path {
        self.segments.dir()
    }

    /// Reads the lines after the end of `chain`, like [`Segments::read`].
    pub fn read(&self, chain: &mut Chain, each: impl FnMut(&Entry)) -> Result<(), Error> {
        self.segments.read(chain, each)
    }

    /// Adds a segment. It is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Superseded`] if the name of the segment exists, even if this worker created it and the reply was lost. After any
    /// other error the segment may or may not exist, so the caller must not act on it.
    pub fn add(&self, first: u64, content: &[u8]) -> Result<(), Error> {
        let temporary = self.dir().join(segment::temporary_name(&self.writer, first));
        let file = self.dir().join(segment::name(first));
        self.create(&temporary, content)?;
        let mut linked = self.files().link(&temporary, &file);
        if linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // Another worker has removed the temporary file, after it claimed this name or a later one. Now that the
            // file exists again, the second link fails because the name exists.
            self.create(&temporary, content)?;
            linked = self.files().link(&temporary, &file);
        }
        self.remove_unneeded(&temporary);
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Superseded { file }),
            Err(error) => Err(Error::from_io("link the segment", &file, error)),
            Ok(()) => self.sync(),
        }
    }

    /// Writes a temporary file. If that fails, removes what was written of it, since a full disk needs the room.
    fn create(&self, temporary: &Path, content: &[u8]) -> Result<(), Error> {
        self.files().create(temporary, content).map_err(|error| {
            self.remove_unneeded(temporary);
            Error::from_io("write the segment", temporary, error)
        })
    }

    /// Removes a temporary file. Readers ignore such files, so a failure has no effect.
    fn remove_unneeded(&self, temporary: &Path) {
        let _ = self.files().remove(temporary);
    }

    /// Removes the temporary files that other workers left for segments up to `claimed`. This worker must just have made segment
    /// `claimed` durable with [`Store::add`].
    ///
    /// This is safe even if another worker is only frozen and continues later. It then tries to link its file to the name that
    /// follows the segments that it has read. This worker has read those segments, too, so that name is at most `claimed`, and it exists
    /// durably. The link therefore fails: the name exists, or the temporary file is missing. A file beyond `claimed` may belong
    /// to a worker that was faster, so it is kept.
    pub(super) fn remove_leftovers_of_others(&self, claimed: u64) {
        for name in self.segments.names().unwrap_or_default() {
            if segment::parse_temporary_name(&name).is_some_and(|(writer, seq)| writer != self.writer && seq <= claimed)
            {
                self.remove_unneeded(&self.dir().join(name));
            }
        }
    }

    fn remove_own_leftovers(&self) -> Result<(), Error> {
        let is_own =
            |name: &&String| segment::parse_temporary_name(name).is_some_and(|(writer, _)| writer == self.writer);
        for name in self.segments.names()?.iter().filter(is_own) {
            let file = self.dir().join(name);
            remove_if_there(self.files(), &file).map_err(|error| Error::from_io("remove a leftover", &file, error))?;
        }
        Ok(())
    }

    /// Returns the error of a log that has only `events` events, although the operator has acknowledged `acknowledged`.
    pub(super) fn lost_error(&self, events: u64, acknowledged: u64) -> Error {
        Error::Lost { dir: self.dir().to_owned(), events, known: acknowledged }
    }

    /// Makes the names of all segments durable.
    pub fn sync(&self) -> Result<(), Error> {
        self.sync_dir(self.dir())
    }

    /// Makes the directory of the log durable, in the skill directory. After a segment of a new log, this costs little: most file systems
    /// write the new directories together with it.
    pub(super) fn sync_parents(&self) -> Result<(), Error> {
        self.dir().ancestors().skip(1).take(PARENTS).try_for_each(|parent| self.sync_dir(parent))
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        self.files().sync_dir(dir).map_err(|error| Error::from_io("sync the directory", dir, error))
    }
}

/// Checks a file name that the operator has chosen. A path could lead out of the skill directory.
fn check_name(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "a name has 1 to 64 letters, digits and '-'");
    Err(Error::Io { action: "use as a file name", path: PathBuf::from(name), source })
}
