//! The directory with the memories of the conversations.

use crate::error::Error;
use crate::local::owner;
use crate::local::writer::random_hex;
use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory with the memories of the conversations. It is removed when this value is dropped, unless a person keeps it.
#[derive(Debug)]
pub struct Scratch {
    /// The path.
    pub dir: PathBuf,
    /// True if the directory is kept.
    pub is_kept: bool,
}

impl Scratch {
    /// Returns the directory that the command line names; or creates one that only this user can read.
    ///
    /// # Errors
    /// If the directory belongs to another user, or cannot be created.
    pub fn new(keep: Option<&Path>) -> Result<Self, Error> {
        if let Some(dir) = keep {
            owner::check(dir)?;
            return Ok(Self { dir: dir.to_owned(), is_kept: true });
        }
        let dir = env::temp_dir().join(format!("bloomery-validate-{}", random_hex()));
        DirBuilder::new().mode(0o700).create(&dir).map_err(|error| {
            let dir = dir.display();
            Error::failed(format!(
                "the directory {dir} for the logs cannot be created: {error}. Name another with --keep"
            ))
        })?;
        Ok(Self { dir, is_kept: false })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the directory stays, which is harmless.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
