//! The memory of one tenant: a directory with one directory for each Skill.

use crate::error::{Error, ErrorKind};
use crate::local::SKILL_FILE;
use crate::local::memory_error::unusable;
use crate::local::skill_directory::{SkillDirectory, entry_names};
use crate::text;
use std::path::{Path, PathBuf};

/// Returns the directories of all Skills that have Jobs, sorted by name.
///
/// # Errors
/// If the memory cannot be read.
pub fn skill_directories(memory: &Path) -> Result<Vec<SkillDirectory>, Error> {
    let names = entry_names(memory).map_err(|error| unusable(memory, &error))?.into_iter();
    let directories = names.map(|name| SkillDirectory::new(memory, &name));
    Ok(directories.filter(|directory| directory.dir.join(bloomery_journal::JOBS).is_dir()).collect())
}

/// Returns the sorted names of the directories that have a Skill.
pub fn skill_names(memory: &Path) -> Vec<String> {
    let mut names = entry_names(memory).unwrap_or_default();
    names.retain(|name| memory.join(name).join(SKILL_FILE).is_file());
    names
}

/// Returns all directories that belong to a memory: the memory itself, the directories in it, and the links to directories in
/// those. A link belongs to the memory even if its target is elsewhere.
pub fn all_directories(memory: &Path) -> Vec<PathBuf> {
    let entries =
        |dir: &Path| entry_names(dir).unwrap_or_default().into_iter().map(|name| dir.join(name)).collect::<Vec<_>>();
    let direct: Vec<PathBuf> = entries(memory).into_iter().filter(|path| path.is_dir()).collect();
    let linked = direct.iter().flat_map(|dir| entries(dir)).filter(|path| path.is_symlink() && path.is_dir());
    let linked: Vec<PathBuf> = linked.collect();
    [vec![memory.to_owned()], direct, linked].concat()
}

/// Returns the directory of the Skill that has the log of a Job. `skill` limits the search to one Skill.
///
/// # Errors
/// If no Skill has the log, or several Skills have one.
pub fn find_log(memory: &Path, skill: Option<&str>, key: &str) -> Result<SkillDirectory, Error> {
    let has_log = |directory: &SkillDirectory| directory.log(key).is_dir();
    find(memory, skill, key, has_log).map_err(|not_found| match find_log_or_record(memory, skill, key) {
        Ok(directory) if !has_log(&directory) => Error::invalid(format!(
            "the Job {key} of the Skill {} has no log, because it comes from an older memory. Its record is {}; \
             `bloomery get {key}` shows it",
            directory.name,
            directory.record(key).display()
        )),
        _ => not_found,
    })
}

/// Returns the directory of the Skill that has the log or the record of a Job. `skill` limits the search to one Skill.
///
/// # Errors
/// If no Skill has a log or record of the Job, or several Skills have one.
pub fn find_log_or_record(memory: &Path, skill: Option<&str>, key: &str) -> Result<SkillDirectory, Error> {
    find(memory, skill, key, |directory| directory.log(key).is_dir() || directory.record(key).is_file())
}

/// Returns the directory of the only Skill for which `has_job` is true. `skill` limits the search to one Skill.
fn find(
    memory: &Path,
    skill: Option<&str>,
    key: &str,
    has_job: impl Fn(&SkillDirectory) -> bool,
) -> Result<SkillDirectory, Error> {
    let mut matching = skill_directories(memory).unwrap_or_default();
    matching.retain(|directory| has_job(directory) && skill.is_none_or(|skill| skill == directory.name));
    match matching.as_slice() {
        [directory] => Ok(directory.clone()),
        [] => {
            let of_skill = skill.map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
            let message = format!("the memory {} has no Job {key}{of_skill}", text::directory(memory));
            Err(Error::new(ErrorKind::NotFound, message))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|directory| directory.name.as_str()).collect();
            Err(Error::invalid(format!(
                "several Skills have a Job {key}. Select one with `options.skill`: {}",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_job_is_found_by_its_log() {
        let memory = tempfile::tempdir().unwrap();
        let directory = SkillDirectory::new(memory.path(), "cs-tier-1");
        directory.open("w").unwrap();
        assert!(find_log(memory.path(), None, "k").is_err());
        fs::create_dir(directory.log("k")).unwrap();
        assert_eq!(find_log(memory.path(), None, "k").unwrap(), directory);
        let other = SkillDirectory::new(memory.path(), "other");
        fs::create_dir_all(other.log("k")).unwrap();
        assert!(find_log(memory.path(), None, "k").unwrap_err().message.contains("cs-tier-1, other"));
        assert_eq!(find_log(memory.path(), Some("other"), "k").unwrap(), other);
    }
}
