//! The focus cache of a skill directory. It stores large results and binary data, named by the digest of their content, and all Jobs of
//! the Skill use it (`docs/explanation/design.md`, section 5).
//!
//! The model receives an excerpt of a large result and its handle, and reads more with `focus_read`. An entry never changes, so Jobs
//! that store the same content at once write the same file; each writes a temporary file first. When the budget is spent, the least
//! recently used entries are removed. A call that reads a removed entry fails with a message for the model.

mod evict;
mod kind;
mod read;

use bloomery_crds::Digest;
use bloomery_journal::files::{Files, replace_unsynced};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the cache's directory in a skill directory.
pub const DIR: &str = "focus-cache";

/// The default of the maximum size of all entries, in bytes.
pub const DEFAULT_BUDGET_BYTES: u64 = bloomery_crds::skill_directory::FOCUS_CACHE_BYTES;

/// The cache, as one worker uses it.
#[derive(Debug, Clone)]
pub struct FocusCache {
    memory: PathBuf,
    dir: PathBuf,
    writer: String,
    budget: u64,
}

impl FocusCache {
    /// Creates the cache in the skill directory `memory`. `writer` is unique to this worker. `budget` is the maximum size of all entries,
    /// in bytes.
    pub fn new(memory: &Path, writer: &str, budget: u64) -> Self {
        Self { memory: memory.to_owned(), dir: memory.join(DIR), writer: writer.to_owned(), budget }
    }

    /// Returns the directory of the entries.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores contents durably, and returns the handle or the error of each. This call does not evict any of them.
    ///
    /// Each call syncs the directories and scans the cache once, so pass all contents of a step together.
    pub fn keep<T: AsRef<[u8]>>(&self, files: &impl Files, contents: &[T]) -> Vec<io::Result<Digest>> {
        if contents.is_empty() {
            return Vec::new();
        }
        self.keep_all(files, contents).unwrap_or_else(|error| {
            contents.iter().map(|_| Err(io::Error::new(error.kind(), error.to_string()))).collect()
        })
    }

    /// Stores the contents. Fails as a whole if the directory cannot be created or synced.
    fn keep_all<T: AsRef<[u8]>>(&self, files: &impl Files, contents: &[T]) -> io::Result<Vec<io::Result<Digest>>> {
        files.create_dir(&self.dir)?;
        files.sync_dir(&self.memory)?;
        let kept: Vec<io::Result<Digest>> =
            contents.iter().map(|content| self.write(files, content.as_ref())).collect();
        // Existing entries need this too: another worker may have stopped before their names were durable.
        files.sync_dir(&self.dir)?;
        let newest: Vec<&str> = kept.iter().flatten().map(name).collect();
        evict::to_budget(files, &self.dir, self.budget, &newest);
        Ok(kept)
    }

    /// Writes an entry if it does not exist. Its name is durable once the directory is synced.
    fn write(&self, files: &impl Files, content: &[u8]) -> io::Result<Digest> {
        let handle = Digest::of_bytes(content);
        let name = name(&handle);
        let file = self.dir.join(name);
        if files.read(&file).is_ok_and(|kept| kept == content) {
            // A failure only affects the order of eviction.
            let _ = files.touch(&file);
        } else {
            replace_unsynced(files, &self.dir, name, &self.writer, content)?;
        }
        Ok(handle)
    }

    /// Returns the content of a handle, or `None` if the entry is absent or was changed.
    pub fn get(&self, files: &(impl Files + ?Sized), handle: &Digest) -> Option<Vec<u8>> {
        let file = self.dir.join(name(handle));
        let content = files.read(&file).ok()?;
        if Digest::of_bytes(&content) != *handle {
            tracing::warn!("the focus cache entry {} does not match its digest, and is ignored", file.display());
            return None;
        }
        let _ = files.touch(&file);
        Some(content)
    }
}

/// Returns the name of an entry: the digest without its algorithm.
fn name(handle: &Digest) -> &str {
    handle.as_str().rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
