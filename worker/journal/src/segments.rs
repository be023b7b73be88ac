//! The segments of one Job's log, as anybody may read them.

use super::files::Files;
use super::{Error, segment};
use bloomery_engine::line::{Chain, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// A log to be read. Nothing is written, made or tried.
#[derive(Debug)]
pub struct Segments<F> {
    files: F,
    dir: PathBuf,
}

impl<F: Files> Segments<F> {
    /// The log in a directory, which need not be there before it is read.
    pub fn new(files: F, dir: PathBuf) -> Self {
        Self { files, dir }
    }

    /// The file layer below.
    pub fn files(&self) -> &F {
        &self.files
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads on from where `chain` stands to the end of the log.
    ///
    /// Segments are opened by name, because a listing may be stale; the listing only tells that one is missing.
    pub fn read(&self, chain: &mut Chain, mut each: impl FnMut(&Entry)) -> Result<(), Error> {
        self.read_lines(chain, |_, entry| each(entry))
    }

    /// Reads as [`Segments::read`] does, and gives each line as it stands.
    pub fn read_lines(&self, chain: &mut Chain, mut each: impl FnMut(&str, &Entry)) -> Result<(), Error> {
        while self.read_segment(chain, &mut each)? {}
        Ok(())
    }

    /// Reads the next segment; says whether there was one.
    pub fn read_segment(&self, chain: &mut Chain, each: &mut impl FnMut(&str, &Entry)) -> Result<bool, Error> {
        if self.read_next(chain, each)? {
            return Ok(true);
        }
        let next = chain.events() + 1;
        let Some(beyond) = self.first_beyond(next)? else { return Ok(false) };
        // It may have been linked since it was looked for.
        if self.read_next(chain, each)? {
            return Ok(true);
        }
        let reason = format!("the file is missing, and {} exists", segment::name(beyond));
        Err(Error::Broken { file: self.dir.join(segment::name(next)), line: 1, reason })
    }

    /// The names of all files in the directory.
    pub(super) fn names(&self) -> Result<Vec<String>, Error> {
        self.files.list(&self.dir).map_err(|error| Error::of("list the directory", &self.dir, error))
    }

    fn read_next(&self, chain: &mut Chain, each: &mut impl FnMut(&str, &Entry)) -> Result<bool, Error> {
        let file = self.dir.join(segment::name(chain.events() + 1));
        match self.files.read(&file) {
            Ok(content) => segment::read(&file, &content, chain, each).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::Io { action: "read the segment", path: file, source: error }),
        }
    }

    fn first_beyond(&self, seq: u64) -> Result<Option<u64>, Error> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| segment::seq_of(name)).filter(|found| *found >= seq).min())
    }
}
