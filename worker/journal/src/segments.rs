//! Reads the segments of one Job's log.

use super::files::Files;
use super::{Error, segment};
use bloomery_engine::line::{Chain, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// The log of one Job, for readers.
#[derive(Debug)]
pub struct Segments<F> {
    files: F,
    dir: PathBuf,
}

impl<F: Files> Segments<F> {
    /// Creates a reader of the log in a directory, which need not exist before the first read.
    pub fn new(files: F, dir: PathBuf) -> Self {
        Self { files, dir }
    }

    /// Returns the file layer.
    pub fn files(&self) -> &F {
        &self.files
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the lines after the end of `chain`, adds them to `chain`, and passes each entry to `each`.
    ///
    /// Segments are opened by name, because a directory listing may be stale. The listing is only used to detect that a segment
    /// is missing.
    pub fn read(&self, chain: &mut Chain, mut each: impl FnMut(&Entry)) -> Result<(), Error> {
        self.read_lines(chain, |_, entry| each(entry))
    }

    /// Reads like [`Segments::read`], and also passes the text of each line.
    pub fn read_lines(&self, chain: &mut Chain, mut each: impl FnMut(&str, &Entry)) -> Result<(), Error> {
        while self.read_segment(chain, &mut each)? {}
        Ok(())
    }

    /// Reads the segment after the end of `chain`. Returns `false` if the log ends there.
    pub fn read_segment(&self, chain: &mut Chain, each: &mut impl FnMut(&str, &Entry)) -> Result<bool, Error> {
        if self.read_by_name(chain, each)? {
            return Ok(true);
        }
        let Some(later) = self.first_from(chain.events() + 1)? else { return Ok(false) };
        // The next segment may have been linked since the first try.
        if self.read_by_name(chain, each)? {
            return Ok(true);
        }
        let reason = format!("the file is missing, but {} exists", segment::name(later));
        Err(Error::Broken { file: self.next_file(chain), line: 1, reason })
    }

    /// Returns the file of the segment after the end of `chain`, which need not exist.
    pub fn next_file(&self, chain: &Chain) -> PathBuf {
        self.dir.join(segment::name(chain.events() + 1))
    }

    /// Returns the names of all files in the directory.
    pub(super) fn names(&self) -> Result<Vec<String>, Error> {
        self.files.list(&self.dir).map_err(|error| Error::from_io("list the directory", &self.dir, error))
    }

    /// Reads the segment after the end of `chain`. Returns `false` if its name does not exist, which does not prove that the log ends.
    fn read_by_name(&self, chain: &mut Chain, each: &mut impl FnMut(&str, &Entry)) -> Result<bool, Error> {
        let file = self.next_file(chain);
        match self.files.read(&file) {
            Ok(content) => segment::read(&file, &content, chain, each).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::Io { action: "read the segment", path: file, source: error }),
        }
    }

    /// Returns the first `seq` of the earliest segment that begins at `seq` or later.
    fn first_from(&self, seq: u64) -> Result<Option<u64>, Error> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| segment::seq_of(name)).filter(|found| *found >= seq).min())
    }
}
