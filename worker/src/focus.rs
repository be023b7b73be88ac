//! The focus cache of a slag: large results, and images and such, by the digest of their content, for all of its Jobs (`docs/explanation/design.md`,
//! section 5).
//!
//! The model sees an excerpt of such a result and its handle, and reads more with `focus_read`. An entry never
//! changes, so Jobs that keep the same text at once write the same file; each is written under a temporary name
//! first. The least recently used entries go where the budget is spent: an entry that is gone is an error that
//! the model is told, and no fault.

mod evict;
mod kind;
mod read;

use bloomery_crds::Digest;
use bloomery_journal::files::{Files, swap};
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

    /// Keeps what came together, texts or not, durably; gives the handle of each, or why it cannot be kept. None of them is
    /// what has to go.
    ///
    /// Together, because directories are synced, and the whole cache is looked through, once a call.
    pub fn keep<T: AsRef<[u8]>>(&self, files: &impl Files, contents: &[T]) -> Vec<io::Result<Digest>> {
        if contents.is_empty() {
            return Vec::new();
        }
        self.keep_all(files, contents).unwrap_or_else(|error| {
            contents.iter().map(|_| Err(io::Error::new(error.kind(), error.to_string()))).collect()
        })
    }

    /// Fails where none of it can be kept.
    fn keep_all<T: AsRef<[u8]>>(&self, files: &impl Files, contents: &[T]) -> io::Result<Vec<io::Result<Digest>>> {
        files.create_dir(&self.dir)?;
        files.sync_dir(&self.memory)?;
        let kept: Vec<io::Result<Digest>> =
            contents.iter().map(|content| self.write(files, content.as_ref())).collect();
        // For those that were there, too: another worker may have written them, and died before their names were durable.
        files.sync_dir(&self.dir)?;
        let newest: Vec<&str> = kept.iter().flatten().map(name).collect();
        evict::to_budget(files, &self.dir, self.budget, &newest);
        Ok(kept)
    }

    /// Writes an entry that is not there yet. Its name is not durable before the directory is synced.
    fn write(&self, files: &impl Files, content: &[u8]) -> io::Result<Digest> {
        let handle = Digest::of_bytes(content);
        let name = name(&handle);
        let file = self.dir.join(name);
        if files.read(&file).is_ok_and(|kept| kept == content) {
            // The order of use is worth no failure.
            let _ = files.touch(&file);
        } else {
            swap(files, &self.dir, name, &self.writer, content)?;
        }
        Ok(handle)
    }

    /// What is behind a handle; none where it is not there (any more), or is not what was kept.
    pub fn get(&self, files: &(impl Files + ?Sized), handle: &Digest) -> Option<Vec<u8>> {
        let file = self.dir.join(name(handle));
        let content = files.read(&file).ok()?;
        if Digest::of_bytes(&content) != *handle {
            tracing::warn!("{} was changed by somebody else; it is not used", file.display());
            return None;
        }
        let _ = files.touch(&file);
        Some(content)
    }
}

/// The name of an entry: the digest, without its algorithm.
fn name(handle: &Digest) -> &str {
    handle.as_str().rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
