//! The directory of one Skill in the memory.

use crate::error::Error;
use crate::local::memory_error::{log_error, unusable};
use crate::local::{older_jobs, owner};
use bloomery_journal::files::{Disk, Files};
use bloomery_worker::{focus, record, shared_cache, tools, trace};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::iter::once;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directories that are created in a skill directory.
const CREATED: [&str; 3] = [bloomery_journal::JOBS, trace::DIR, focus::DIR];

/// The directories in a skill directory that Jobs write to or that a model can see.
const USED: [&str; 5] = [bloomery_journal::JOBS, trace::DIR, focus::DIR, shared_cache::DIR, tools::BANK];

/// The directory of one Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDirectory {
    /// The name of the Skill.
    pub name: String,
    /// The path of the directory.
    pub dir: PathBuf,
}

impl SkillDirectory {
    /// Returns the directory of a Skill in a memory. The directory need not exist.
    pub fn new(memory: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), dir: memory.join(name) }
    }

    /// Returns the memory that has this directory.
    pub fn memory(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Returns the directory of a Job's log.
    pub fn log(&self, key: &str) -> PathBuf {
        self.dir.join(bloomery_journal::JOBS).join(key)
    }

    /// Returns the path of a Job's record.
    pub fn record(&self, key: &str) -> PathBuf {
        record::file(&self.dir, key)
    }

    /// Returns the sorted keys of all Jobs that have a log or a record. A record that is being written, and one whose writer was killed, have a
    /// name that begins with `.`: they are no Jobs.
    pub fn job_keys(&self) -> Vec<String> {
        let names = entry_names(&self.dir.join(bloomery_journal::JOBS)).unwrap_or_default();
        let key_of = |name: &String| {
            let key_of_record = name.strip_suffix(".json").filter(|key| !key.is_empty() && self.record(key).is_file());
            key_of_record.or_else(|| self.log(name).is_dir().then_some(name.as_str())).map(str::to_owned)
        };
        let keys: BTreeSet<String> = names.iter().filter(|name| !name.starts_with('.')).filter_map(key_of).collect();
        keys.into_iter().collect()
    }

    /// Checks that the memory, this directory and the directories in it that Jobs use belong to the user of this process.
    ///
    /// # Errors
    /// If one of them belongs to another user, or its owner cannot be read.
    pub fn check_owner(&self) -> Result<(), Error> {
        owner::check(self.memory())?;
        once(self.dir.clone()).chain(USED.map(|name| self.dir.join(name))).try_for_each(|dir| owner::check(&dir))
    }

    /// Returns whether the directory holds jobs of an older memory that belong to other Skills. Such jobs have no log.
    pub fn holds_older_jobs(&self) -> bool {
        let is_older = |key: &String| !self.log(key).is_dir() && !older_jobs::belongs_to(&self.record(key), &self.name);
        older_jobs::is_older_jobs_dir(&self.dir) && self.job_keys().iter().any(is_older)
    }

    /// Creates the skill directory and the directories in it, if they are missing. Checks that a log can be stored there.
    ///
    /// # Errors
    /// If the directory belongs to another user, is read-only or full, or its file system cannot protect a log from two
    /// writers. The directories that this call has created are then removed again.
    pub fn open(&self, writer: &str) -> Result<(), Error> {
        self.check_owner()?;
        let inner = CREATED.map(|name| self.dir.join(name));
        let dirs = inner.iter().map(PathBuf::as_path).chain(self.dir.ancestors());
        let missing: Vec<&Path> = dirs.filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
        self.create(writer).inspect_err(|_| {
            // Removes the deepest directories first. This fails for a directory that is not empty.
            for dir in &missing {
                drop(fs::remove_dir(dir));
            }
        })
    }

    fn create(&self, writer: &str) -> Result<(), Error> {
        create_private_memory(self.memory()).map_err(|error| unusable(&self.dir, &error))?;
        fs::create_dir_all(&self.dir).map_err(|error| unusable(&self.dir, &error))?;
        bloomery_journal::check_volume(&Disk, &self.dir, writer).map_err(|error| log_error(&error))?;
        for name in CREATED {
            let dir = self.dir.join(name);
            fs::create_dir_all(&dir).map_err(|error| unusable(&dir, &error))?;
        }
        Ok(())
    }

    /// Makes the entry of this directory in the memory durable. A log survives a power failure only if the entries of the directories
    /// above it are on disk. The claim of an epoch syncs this directory and those in it.
    ///
    /// # Errors
    /// If the memory cannot be synced.
    pub fn sync(&self) -> Result<(), Error> {
        Disk.sync_dir(self.memory()).map_err(|error| unusable(self.memory(), &error))
    }
}

/// Creates a memory that only its user can read, because goals and results are private. An existing memory keeps its mode.
fn create_private_memory(memory: &Path) -> io::Result<()> {
    if let Some(parent) = memory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(memory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && memory.is_dir() => Ok(()),
        created => created,
    }
}

/// Returns the sorted names of the files and directories in a directory. Skips names that are not UTF-8.
pub(super) fn entry_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> =
        fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn opening_creates_missing_directories() {
        let memory = tempfile::tempdir().unwrap();
        let directory = SkillDirectory::new(memory.path(), "cs-tier-1");
        directory.open("w").unwrap();
        directory.open("w").unwrap();
        assert_eq!(entry_names(&directory.dir).unwrap(), ["focus-cache", "jobs", "logs"]);
    }

    #[test]
    fn a_record_that_is_being_written_is_no_job() {
        let memory = tempfile::tempdir().unwrap();
        let directory = SkillDirectory::new(memory.path(), "greeter");
        directory.open("w").unwrap();
        fs::write(directory.record("k-1"), "{}").unwrap();
        fs::write(directory.record(".tmp-w-k-1"), "{}").unwrap();
        assert_eq!(directory.job_keys(), ["k-1"]);
    }

    #[test]
    fn only_its_user_can_read_a_new_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let fresh = dir.path().join("new/memory");
        SkillDirectory::new(&fresh, "greeter").open("w").unwrap();
        assert_eq!(mode(&fresh), 0o700);
        let existing = dir.path().join("existing");
        fs::create_dir(&existing).unwrap();
        let before = mode(&existing);
        SkillDirectory::new(&existing, "greeter").open("w").unwrap();
        assert_eq!(mode(&existing), before);
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(create_private_memory(&dir.path().join("file")).is_err());
    }
}
