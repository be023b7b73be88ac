//! A short-lived cache that the Jobs of a Skill share: `cache/` in the skill directory (`docs/explanation/design.md`, section 5).
//!
//! Each entry is a small file, because on a cluster each process serves only one Job. The cache may be lost: if an entry is absent,
//! expired or unreadable, its value is determined again.

use bloomery_crds::Digest;
use bloomery_journal::files::{Files, keep_newest, replace_unsynced};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The name of the cache's directory in a skill directory.
pub const DIR: &str = "cache";

/// The largest entry, in bytes. Catalogues of tools are the largest entries.
const MAX_ENTRY_BYTES: u64 = 2 * 1024 * 1024;

/// The maximum number of entries. The oldest are removed first.
const MAX_ENTRIES: usize = 64;

/// The kinds of entries, each with its own maximum age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The tools that a model selected for a goal.
    Selection,
    /// The tools that an MCP server lists.
    Catalogue,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Selection => "selection",
            Self::Catalogue => "catalogue",
        }
    }

    fn max_age(self) -> Duration {
        match self {
            Self::Selection => Duration::from_mins(10),
            Self::Catalogue => Duration::from_mins(1),
        }
    }
}

/// The cache, as one worker uses it.
#[derive(Debug, Clone)]
pub struct SharedCache {
    dir: PathBuf,
    writer: String,
}

impl SharedCache {
    /// Creates the cache in the skill directory `memory`. `writer` is unique to this worker.
    pub fn new(memory: &Path, writer: &str) -> Self {
        Self { dir: memory.join(DIR), writer: writer.to_owned() }
    }

    /// Returns the value of a key, unless the entry has expired.
    pub fn get<T: DeserializeOwned>(&self, files: &impl Files, kind: Kind, key: &Digest) -> Option<T> {
        let file = self.dir.join(name(kind, key));
        let usage = files.usage(&file).ok().filter(|usage| usage.bytes <= MAX_ENTRY_BYTES)?;
        // If the entry is dated in the future, another clock has dated it, and its age is unknown.
        let age = SystemTime::now().duration_since(usage.used).ok()?;
        if age > kind.max_age() {
            return None;
        }
        serde_json::from_slice(&files.read(&file).ok()?).ok()
    }

    /// Stores a value under a key. A failure is only logged, because the value can be determined again.
    pub fn put<T: Serialize>(&self, files: &impl Files, kind: Kind, key: &Digest, value: &T) {
        if let Err(error) = self.write(files, &name(kind, key), value) {
            tracing::warn!("the cache entry cannot be written in {}: {error}", self.dir.display());
        }
    }

    fn write<T: Serialize>(&self, files: &impl Files, name: &str, value: &T) -> io::Result<()> {
        let content = serde_json::to_vec(value)?;
        if content.len() as u64 > MAX_ENTRY_BYTES {
            return Ok(());
        }
        files.create_dir(&self.dir)?;
        replace_unsynced(files, &self.dir, name, &self.writer, &content)?;
        keep_newest(files, &self.dir, MAX_ENTRIES)
    }
}

/// Removes the entries of a skill directory that are older than every kind allows. The others are removed by their number.
pub fn remove_expired(memory: &Path, now: SystemTime) {
    let max_age = Kind::Selection.max_age().max(Kind::Catalogue.max_age());
    for entry in std::fs::read_dir(memory.join(DIR)).into_iter().flatten().filter_map(Result::ok) {
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let age = written.ok().and_then(|written| now.duration_since(written).ok());
        if age.is_some_and(|age| age > max_age) {
            // Another worker may have removed it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn name(kind: Kind, key: &Digest) -> String {
    format!("{}-{}.json", kind.name(), key.short(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_journal::files::Disk;
    use std::fs::File;

    fn key(text: &str) -> Digest {
        Digest::of_bytes(text.as_bytes())
    }

    fn cache(memory: &Path) -> SharedCache {
        SharedCache::new(memory, "uid-1")
    }

    /// Makes all entries look as old as `age`.
    fn set_age(memory: &Path, age: Duration) {
        for entry in std::fs::read_dir(memory.join(DIR)).unwrap() {
            let file = File::options().append(true).open(entry.unwrap().path()).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
    }

    #[test]
    fn a_value_is_cached_under_its_key_until_it_expires() {
        let memory = tempfile::tempdir().unwrap();
        let found = vec!["lookup".to_owned()];
        cache(memory.path()).put(&Disk, Kind::Selection, &key("a"), &found);
        let get = |text: &str| cache(memory.path()).get::<Vec<String>>(&Disk, Kind::Selection, &key(text));
        assert_eq!(get("a"), Some(found));
        assert_eq!(get("b"), None);
        set_age(memory.path(), Kind::Selection.max_age() + Duration::from_secs(1));
        assert_eq!(get("a"), None);
    }

    #[test]
    fn only_expired_entries_are_removed() {
        let memory = tempfile::tempdir().unwrap();
        cache(memory.path()).put(&Disk, Kind::Selection, &key("old"), &1);
        set_age(memory.path(), Duration::from_mins(11));
        cache(memory.path()).put(&Disk, Kind::Selection, &key("new"), &2);
        remove_expired(memory.path(), SystemTime::now());
        let left = |text| cache(memory.path()).get::<u8>(&Disk, Kind::Selection, &key(text));
        assert_eq!((left("new"), std::fs::read_dir(memory.path().join(DIR)).unwrap().count()), (Some(2), 1));
        remove_expired(&memory.path().join("absent"), SystemTime::now());
    }

    #[test]
    fn an_entry_that_is_invalid_or_dated_in_the_future_is_ignored() {
        let memory = tempfile::tempdir().unwrap();
        let cache = cache(memory.path());
        cache.put(&Disk, Kind::Selection, &key("a"), &"no list");
        assert_eq!(cache.get::<Vec<String>>(&Disk, Kind::Selection, &key("a")), None);
        cache.put(&Disk, Kind::Selection, &key("a"), &["x"]);
        let file = File::options().append(true).open(cache.dir.join(name(Kind::Selection, &key("a")))).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_hours(1)).unwrap();
        assert_eq!(cache.get::<Vec<String>>(&Disk, Kind::Selection, &key("a")), None);
    }

    #[test]
    fn a_memory_that_cannot_be_written_is_not_an_error() {
        let memory = tempfile::tempdir().unwrap();
        cache(&memory.path().join("absent")).put(&Disk, Kind::Selection, &key("a"), &["x"]);
    }

    #[test]
    fn the_oldest_entries_are_removed() {
        let memory = tempfile::tempdir().unwrap();
        let cache = cache(memory.path());
        cache.put(&Disk, Kind::Selection, &key("oldest"), &["x"]);
        set_age(memory.path(), Duration::from_mins(1));
        for at in 0..MAX_ENTRIES {
            cache.put(&Disk, Kind::Selection, &key(&at.to_string()), &["x"]);
        }
        assert_eq!(Disk.list(&cache.dir).unwrap().len(), MAX_ENTRIES);
        assert_eq!(cache.get::<Vec<String>>(&Disk, Kind::Selection, &key("oldest")), None);
    }
}
