//! Moves the files of an older memory to the directories of their Skills. The runtime before Bloomery stored the jobs of all Skills in
//! one directory of its memory.
//!
//! `bloomery migrate` does this for a memory on a machine, and `bloomery-worker migrate` for the memory of a namespace.

mod moving;
pub mod older_job;
mod plan;

pub use moving::Error as MoveError;
pub use plan::{Move, Plan, Reason, Unmoved, plan, remove_empty};

use std::path::{Component, Path, PathBuf};

/// The file in the directory of a Skill that has the Skill.
const SKILL_FILE: &str = crate::skill_file::NAME;

/// A step of a migration, for people.
#[derive(Debug)]
pub enum Step<'a> {
    /// The file is moved, or would be moved.
    Moves(&'a Move),
    /// The file stays.
    Stays(&'a Unmoved),
}

/// The numbers of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The files that were moved, or would be moved.
    pub moved: usize,
    /// The files that stay.
    pub stay: usize,
}

/// The reason why a memory is not migrated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is not in the memory.
    #[error("--from {0:?} must be a directory in the memory")]
    Outside(String),
    /// The directory is that of a Skill.
    #[error("{} is the directory of a Skill, and holds the jobs of that Skill: nothing is migrated", .0.display())]
    IsSkill(PathBuf),
    /// The name of the Skill for other jobs is invalid.
    #[error("--skill {0:?} is no name of a Skill")]
    InvalidSkill(String),
    /// The directory cannot be read.
    #[error("{} cannot be read: {source}", .dir.display())]
    Unreadable {
        /// The directory.
        dir: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A line cannot be printed.
    #[error("the moves cannot be printed: {0}")]
    Output(#[from] std::io::Error),
}

/// Returns the directory whose files are moved. `None` if it is not below the memory.
pub fn source_dir(memory: &Path, name: &str) -> Option<PathBuf> {
    let from = memory.join(name);
    let mut parts = Path::new(name).components();
    let is_below = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    let leads_out = match (memory.canonicalize(), from.canonicalize()) {
        (Ok(memory), Ok(from)) => from == memory || !from.starts_with(&memory),
        // The caller reports a missing or unreadable directory.
        _ => false,
    };
    (is_below && !leads_out).then_some(from)
}

/// Moves the files of a plan, or only checks the moves if not `apply`. Calls `print` for each move, and then for each file that stays.
///
/// # Errors
/// The first error of `print`.
pub fn move_files<E>(
    memory: &Path,
    plan: Plan,
    apply: bool,
    mut print: impl FnMut(Step<'_>) -> Result<(), E>,
) -> Result<Counts, E> {
    let Plan { moves, mut unmoved } = plan;
    let mut moved = 0;
    for step in &moves {
        let result = if apply {
            moving::perform(memory, &step.from, &step.to)
        } else {
            moving::check(memory, &step.from, &step.to)
        };
        match result {
            Ok(()) => {
                moved += 1;
                print(Step::Moves(step))?;
            }
            Err(error) => unmoved.push(Unmoved { file: step.from.clone(), reason: error.into() }),
        }
    }
    unmoved.iter().try_for_each(|unmoved| print(Step::Stays(unmoved)))?;
    Ok(Counts { moved, stay: unmoved.len() })
}

/// Migrates the directory `from` of a memory on a cluster, which belongs to the group of the workers. Prints each step to `out`.
/// Returns the numbers of files; `None` if there is no such directory.
///
/// # Errors
/// If the directory is not in the memory, is that of a Skill, or cannot be read.
pub fn migrate(
    memory: &Path,
    from: &str,
    default_skill: &str,
    apply: bool,
    out: &mut impl std::io::Write,
) -> Result<Option<Counts>, Error> {
    if !bloomery_crds::names::is_name(default_skill) {
        return Err(Error::InvalidSkill(default_skill.to_owned()));
    }
    let dir = source_dir(memory, from).ok_or_else(|| Error::Outside(from.to_owned()))?;
    if dir.join(SKILL_FILE).exists() {
        return Err(Error::IsSkill(dir));
    }
    if !dir.try_exists().unwrap_or(true) {
        return Ok(None);
    }
    let plan = plan(memory, &dir, default_skill).map_err(|source| Error::Unreadable { dir: dir.clone(), source })?;
    let counts = move_files(memory, plan, apply, |step| match step {
        Step::Moves(step) => writeln!(out, "{} -> {}", printable(&step.from), printable(&step.to)),
        Step::Stays(unmoved) => writeln!(out, "{} stays: {}", printable(&unmoved.file), unmoved.reason),
    })?;
    if apply {
        remove_empty(&dir);
    }
    Ok(Some(counts))
}

/// Returns a path without control characters.
fn printable(path: &Path) -> String {
    path.display().to_string().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn memory() -> tempfile::TempDir {
        let memory = tempfile::tempdir().unwrap();
        fs::create_dir_all(memory.path().join("workspace/jobs")).unwrap();
        fs::write(memory.path().join("workspace/jobs/job_1.json"), r#"{"skillSlug": "cs-tier-1"}"#).unwrap();
        fs::write(memory.path().join("workspace/jobs/job_2.json"), r#"{"skillSlug": "../etc"}"#).unwrap();
        memory
    }

    fn migrated(memory: &Path, apply: bool) -> (Option<Counts>, String) {
        let mut out = Vec::new();
        let counts = migrate(memory, "workspace", "sw-dev-agent", apply, &mut out).unwrap();
        (counts, String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_memory_of_a_namespace_is_migrated_once() {
        let memory = memory();
        let planned = migrated(memory.path(), false);
        assert_eq!(planned.0, Some(Counts { moved: 1, stay: 1 }));
        assert!(planned.1.contains("workspace/jobs/job_1.json -> cs-tier-1/jobs/job_1.json\n"), "{}", planned.1);
        assert!(planned.1.contains("workspace/jobs/job_2.json stays: its Skill cannot be named"), "{}", planned.1);
        assert_eq!(migrated(memory.path(), true), planned);
        assert!(memory.path().join("cs-tier-1/jobs/job_1.json").exists());
        assert_eq!(migrated(memory.path(), true).0, Some(Counts { moved: 0, stay: 1 }));
        fs::remove_dir_all(memory.path().join("workspace")).unwrap();
        assert_eq!(migrated(memory.path(), true).0, None);
    }

    #[test]
    fn the_directory_of_a_skill_and_one_outside_of_the_memory_are_refused() {
        let memory = memory();
        let refused = |from, skill| migrate(memory.path(), from, skill, true, &mut Vec::new()).unwrap_err().to_string();
        assert!(refused("../x", "sw-dev-agent").contains("must be a directory in the memory"));
        assert!(refused("workspace", "../etc").contains("no name of a Skill"));
        fs::write(memory.path().join("workspace/skill.yaml"), "").unwrap();
        assert!(refused("workspace", "sw-dev-agent").contains("directory of a Skill"));
    }
}
