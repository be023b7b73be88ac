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
pub(super) const MAX_READ_BYTES: u64 = 256 * 1024;

/// The number of hexadecimal digits in the hash that models see. It is the beginning of the digest.
const HASH_DIGITS: usize = 16;

/// The content of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoteContent {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

impl NoteContent {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of_bytes(&bytes), bytes }
    }

    /// Returns the short hash that identifies the content for models.
    pub(super) fn hash(&self) -> &str {
        hash(&self.digest)
    }
}

/// Returns the short hash of a digest.
pub(super) fn hash(digest: &Digest) -> &str {
    digest.short(HASH_DIGITS)
}

/// Returns the value of `expect` that matches the current content.
pub(super) fn expected_hash(current: Option<&NoteContent>) -> &str {
    current.map_or(NONE, NoteContent::hash)
}

/// Opens a file of the bank without following links or blocking.
pub(super) fn open(dir: &Dir, file: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    dir.open_with(file, options.read(true).follow(FollowSymlinks::No).nonblock(true))
}

/// Reads the file of a note. Returns `None` if the file does not exist.
///
/// # Errors
/// A message for the model.
pub(super) fn read(dir: &Dir, file: &Path, name: &Name) -> Result<Option<NoteContent>, Error> {
    let read_error = |error: &io::Error| Error::from(format!("{name} cannot be read: {error}. Nothing was changed."));
    let path_metadata = match dir.symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(|error| read_error(&error))?,
    };
    let not_a_file = |kind: &str| {
        Error::from(format!("{name} is {kind} instead of a note. Nothing was changed. A person must move it away."))
    };
    if !path_metadata.is_file() {
        return Err(not_a_file(kind(&path_metadata)));
    }
    let opened = match open(dir, file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| read_error(&error))?,
    };
    let metadata = opened.metadata().map_err(|error| read_error(&error))?;
    // Another process may have replaced the file.
    if !metadata.is_file() {
        return Err(not_a_file(kind(&metadata)));
    }
    let mut bytes = Vec::new();
    opened.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes).map_err(|error| read_error(&error))?;
    if bytes.len() as u64 > MAX_READ_BYTES {
        let size = metadata.len();
        return Err(format!(
            "{name} has {size} bytes, more than the limit of {MAX_READ_BYTES} for a note. Nothing was changed. A person must \
             shorten it."
        ).into());
    }
    if text::has_nul(&bytes) {
        return Err(format!(
            "{name} contains a NUL byte, so it is not text. Nothing was changed. A person must correct it."
        )
        .into());
    }
    Ok(Some(NoteContent::new(bytes)))
}
