//! What a note holds at a moment.

use super::{NONE, Name};
use crate::Error;
use crate::root::kind;
use crate::text;
use bloomery_crds::Digest;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The largest note that is read, in bytes: people may write larger ones than Jobs do.
pub(super) const MAX_READ: u64 = 256 * 1024;

/// How many digits of a digest a caller is shown, and has to say again.
const HASH: usize = 16;

/// What a note holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

impl Held {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of_bytes(&bytes), bytes }
    }

    /// Stands for the content where a caller says what it has read.
    pub(super) fn hash(&self) -> &str {
        hash(&self.digest)
    }
}

/// The digits of a digest that a caller is shown.
pub(super) fn hash(digest: &Digest) -> &str {
    digest.short(HASH)
}

/// What a caller would have to expect.
pub(super) fn expectation(held: Option<&Held>) -> &str {
    held.map_or(NONE, Held::hash)
}

/// Opens what a name in the bank stands for; no link is followed, and nothing is waited for.
pub(super) fn open(dir: &Dir, file: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    dir.open_with(file, options.read(true).follow(FollowSymlinks::No).nonblock(true))
}

/// Reads a regular file of the bank; nothing where there is none. What it is else is told, not followed or waited for.
///
/// # Errors
/// A sentence for the model.
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
            format!("{name} holds a NUL byte, so it is no text: a person has to mend it; nothing was done.").into()
        );
    }
    Ok(Some(Held::of(bytes)))
}
