//! The file of a secret value, which is read again when it has changed.

use super::forms::MAX_VALUE_BYTES;
use super::plain_file;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of a secret value.
pub(super) struct Source {
    name: String,
    path: PathBuf,
    /// The version of the file that was read last.
    last_read: Option<Version>,
}

/// The metadata that shows a change of the file. The kubelet does not write into the file but replaces it, so the inode changes.
#[derive(PartialEq, Eq)]
struct Version {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Source {
    pub(super) fn new(name: &str, path: &Path) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), last_read: None }
    }

    /// Reads the file if it has changed since the last read. Returns the name and the value of the secret; `None` if the file is
    /// unchanged, or cannot be read.
    pub(super) fn read_if_changed(&mut self) -> Option<(String, Vec<u8>)> {
        let metadata = fs::metadata(&self.path).ok()?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let version = Version { inode: metadata.ino(), bytes: metadata.len(), modified };
        if self.last_read.as_ref() == Some(&version) {
            return None;
        }
        let mut value = Vec::new();
        // The limit is above that of a value, because whitespace around the value is removed.
        plain_file::open(&self.path).ok()?.take(2 * MAX_VALUE_BYTES as u64).read_to_end(&mut value).ok()?;
        // If the file was replaced since its metadata was read, the next call reads it again.
        self.last_read = Some(version);
        Some((self.name.clone(), value.trim_ascii().to_owned()))
    }
}
