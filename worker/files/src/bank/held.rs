//! The content of a note.

use super::{NONE, Name};
use crate::Error;
use crate::root::kind;
use crate::text;
use bloomery_crds::Digest;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The largest note that is read, in bytes. People may write larger notes than Jobs.
pub(super) const MAX_READ: u64 = 256 * 1024;

/// The length of the hash that a caller reads and returns, in digits of the digest.
const HASH: usize = 16;

/// The content of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

impl Held {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of_bytes(&bytes), bytes }
    }

    /// Returns the short hash that identifies the content for callers.
    pub(super) fn hash(&self) -> &str {
        hash(&self.digest)
    }
}

/// Returns the short hash of a digest.
pub(super) fn hash(digest: &Digest) -> &str {
    digest.short(HASH)
}

/// Returns the value of `expect` that matches the current content.
pub(super) fn expectation(held: Option<&Held>) -> &str {
    held.map_or(NONE, Held::hash)
}

/// Opens a file of the bank without following links or blocking.
pub(super) fn open(dir: &Dir, file: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    dir.open_with(file, options.read(true).follow(FollowSymlinks::No).nonblock(true))
}

/// Reads a regular file of the bank. Returns `None` if there is none.
///
/// # Errors
/// A message for the model.
pub(super) fn read(dir: &Dir, file: &Path, name: &Name) -> Result<Option<Held>, Error> {
    let cannot = |error: &io::Error| Error::from(format!("{name} cannot be read: {error}; nothing was done."));
    let found = match dir.symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| cannot(&error))?,
    };
    let no_file =
        |what: &str| Error::from(format!("{name} is {what}, no note: a person has to move it away; nothing was done."));
    if !found.is_file() {
        return Err(no_file(kind(&found)));
    }
    let opened = match open(dir, file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| cannot(&error))?,
    };
    let metadata = opened.metadata().map_err(|error| cannot(&error))?;
    if !metadata.is_file() {
        return Err(no_file(kind(&metadata)));
    }
    let mut bytes = Vec::new();
    opened.take(MAX_READ + 1).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    if bytes.len() as u64 > MAX_READ {
        let size = metadata.len();
        return Err(format!(
            "{name} has {size} bytes, more than the {MAX_READ} of a note that is read: a person has to shorten it; nothing \
             was done."
        ).into());
    }
    if text::has_nul(&bytes) {
        return Err(
            format!("{name} holds a NUL byte, so it is no text: a person has to fix it; nothing was done.").into()
        );
    }
    Ok(Some(Held::new(bytes)))
}
