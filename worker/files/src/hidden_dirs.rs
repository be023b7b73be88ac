//! Directories that no call can reach. They are identified by device and inode number, not by path.

use cap_std::fs::{Metadata, MetadataExt};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Directories that are hidden from all calls, with all their contents.
#[derive(Debug)]
pub(crate) struct HiddenDirs(Vec<Directory>);

#[derive(Debug)]
struct Directory {
    dev: u64,
    ino: u64,
    /// Keeps the inode number from being reused.
    _open: File,
}

impl HiddenDirs {
    /// Hides the directories at these paths, even if they are moved later.
    ///
    /// # Errors
    /// If one of the directories cannot be opened.
    pub(crate) fn open(paths: &[&Path]) -> io::Result<Self> {
        let open_dir = |path: &&Path| {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            Ok(Directory { dev: metadata.dev(), ino: metadata.ino(), _open: file })
        };
        paths.iter().map(open_dir).collect::<io::Result<_>>().map(Self)
    }

    /// Returns whether the metadata is that of a hidden directory.
    pub(crate) fn contains(&self, metadata: &Metadata) -> bool {
        metadata.is_dir() && self.has_identity((metadata.dev(), metadata.ino()))
    }

    /// Returns whether a path is a hidden directory or below one. The path must be canonical.
    pub(crate) fn covers(&self, path: &Path) -> io::Result<bool> {
        for ancestor in path.ancestors() {
            let metadata = std::fs::metadata(ancestor)?;
            if self.has_identity((metadata.dev(), metadata.ino())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_identity(&self, identity: (u64, u64)) -> bool {
        self.0.iter().any(|directory| (directory.dev, directory.ino) == identity)
    }
}

/// Returns the error of a call that would reach a hidden directory.
pub(crate) fn access_error() -> io::Error {
    io::Error::other("it is in the memory of Jobs, which the file tools cannot access")
}
