//! A file with a secret value, read again when it has changed.

use super::forms::MAX_VALUE_BYTES;
use super::plain_file;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a secret value comes from.
pub(super) struct Source {
    name: String,
    path: PathBuf,
    read: Option<Version>,
}

/// What changes when a file does: the kubelet puts another file in its place.
#[derive(PartialEq, Eq)]
struct Version {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Source {
    pub(super) fn new(name: &str, path: &Path) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), read: None }
    }

    /// The name and the value, where the file was not read as it is now. One that is not there (yet) holds nothing.
    pub(super) fn changed(&mut self) -> Option<(String, Vec<u8>)> {
        let metadata = fs::metadata(&self.path).ok()?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let version = Version { inode: metadata.ino(), bytes: metadata.len(), modified };
        if self.read.as_ref() == Some(&version) {
            return None;
        }
        let mut value = Vec::new();
        // What is round a value is trimmed, so a little more than the value is read.
        plain_file::open(&self.path).ok()?.take(2 * MAX_VALUE_BYTES as u64).read_to_end(&mut value).ok()?;
        // What was put there since is found at the next look.
        self.read = Some(version);
        Some((self.name.clone(), value.trim_ascii().to_owned()))
    }
}
