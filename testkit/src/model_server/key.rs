//! The key that clients must send.

use std::io;
use std::path::PathBuf;

/// The source of the key.
#[derive(Clone, Debug)]
pub enum Key {
    /// The key itself.
    Value(String),
    /// A file with the key. It is read at each request, so a changed Secret takes effect at once.
    File(PathBuf),
}

impl Key {
    /// Returns the current key. Removes white space around the key of a file.
    pub(super) fn read(&self) -> io::Result<String> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map(|key| key.trim().to_owned())
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
}
