//! The focus cache of a slag: large results by the digest of their content, for all of its Jobs (`design.md`,
//! section 5).
//!
//! The model sees an excerpt of such a result and its handle, and reads more with `focus_read`. An entry never
//! changes, so Jobs that keep the same text at once write the same file; each is written under a temporary name
//! first. The least recently used entries go where the budget is spent: an entry that is gone is an error that
//! the model is told, and no fault.

mod evict;
mod read;

use crate::log::files::{Files, swap};
use bloomery_crds::Digest;
use std::io;
use std::path::{Path, PathBuf};

/// The directory in a slag's memory.
pub const DIR: &str = "focus-cache";

/// The budget where nothing is said, in bytes.
pub const BUDGET: u64 = 256 * 1024 * 1024;

/// The cache, as one worker uses it.
#[derive(Debug, Clone)]
pub struct FocusCache {
    memory: PathBuf,
    dir: PathBuf,
    writer: String,
    budget: u64,
}

impl FocusCache {
    /// The cache in `memory`. `writer` is unique to this worker; `budget` is what all entries may take, in bytes.
    pub fn new(memory: &Path, writer: &str, budget: u64) -> Self {
        Self { memory: memory.to_owned(), dir: memory.join(DIR), writer: writer.to_owned(), budget }
    }

    /// The directory of the entries.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps texts that came together, durably; gives the handle of each, or why it cannot be kept. None of them is
    /// what has to go.
    ///
    /// Together, because directories are synced, and the whole cache is looked through, once a call.
    pub fn keep(&self, files: &impl Files, texts: &[&str]) -> Vec<io::Result<Digest>> {
        if texts.is_empty() {
            return Vec::new();
        }
        self.keep_all(files, texts).unwrap_or_else(|error| {
            texts.iter().map(|_| Err(io::Error::new(error.kind(), error.to_string()))).collect()
        })
    }

    /// Fails where none of the texts can be kept.
    fn keep_all(&self, files: &impl Files, texts: &[&str]) -> io::Result<Vec<io::Result<Digest>>> {
        files.create_dir(&self.dir)?;
        files.sync_dir(&self.memory)?;
        let kept: Vec<io::Result<Digest>> = texts.iter().map(|text| self.write(files, text)).collect();
        // For those that were there, too: another worker may have written them, and died before their names were durable.
        files.sync_dir(&self.dir)?;
        let newest: Vec<&str> = kept.iter().flatten().map(name).collect();
        evict::to_budget(files, &self.dir, self.budget, &newest);
        Ok(kept)
    }

    /// Writes an entry that is not there yet. Its name is not durable before the directory is synced.
    fn write(&self, files: &impl Files, text: &str) -> io::Result<Digest> {
        let handle = Digest::of_bytes(text.as_bytes());
        let name = name(&handle);
        let file = self.dir.join(name);
        if files.read(&file).is_ok_and(|kept| kept == text.as_bytes()) {
            // The order of use is worth no failure.
            let _ = files.touch(&file);
        } else {
            swap(files, &self.dir, name, &self.writer, text.as_bytes())?;
        }
        Ok(handle)
    }

    /// The text behind a handle; none where it is not there (any more), or is not what was kept.
    pub fn get(&self, files: &impl Files, handle: &Digest) -> Option<String> {
        let file = self.dir.join(name(handle));
        let text = String::from_utf8(files.read(&file).ok()?).ok()?;
        if Digest::of_bytes(text.as_bytes()) != *handle {
            tracing::warn!("{} was changed by somebody else; it is not used", file.display());
            return None;
        }
        let _ = files.touch(&file);
        Some(text)
    }
}

/// The name of an entry: the digest, without its algorithm.
fn name(handle: &Digest) -> &str {
    handle.as_str().rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
