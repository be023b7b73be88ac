//! Directories that no call reaches, by whatever name: they are known by what they are, and not by where.

use cap_std::fs::{Metadata, MetadataExt};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Directories that are kept from all calls, with everything in them.
#[derive(Debug)]
pub(crate) struct Hidden(Vec<Directory>);

#[derive(Debug)]
struct Directory {
    dev: u64,
    ino: u64,
    /// As long as it is open, no other directory gets its number.
    _open: File,
}

impl Hidden {
    /// Hides the directories that are at these paths now, wherever they go.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(crate) fn open(paths: &[&Path]) -> io::Result<Self> {
        let opened = |path: &&Path| {
            let open = File::open(path)?;
            let metadata = open.metadata()?;
            Ok(Directory { dev: metadata.dev(), ino: metadata.ino(), _open: open })
        };
        paths.iter().map(opened).collect::<io::Result<_>>().map(Self)
    }

    /// Whether this is of one of them.
    pub(crate) fn is(&self, metadata: &Metadata) -> bool {
        metadata.is_dir() && self.has((metadata.dev(), metadata.ino()))
    }

    /// Whether a path leads to one of them or into it, names taken as they stand.
    pub(crate) fn holds(&self, path: &Path) -> io::Result<bool> {
        for above in path.ancestors() {
            let metadata = std::fs::metadata(above)?;
            if self.has((metadata.dev(), metadata.ino())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has(&self, identity: (u64, u64)) -> bool {
        self.0.iter().any(|directory| (directory.dev, directory.ino) == identity)
    }
}

/// What a call is told that would reach one of them.
pub(crate) fn refused() -> io::Error {
    io::Error::other("it is in the memory of Jobs, which no file tool reaches")
}
