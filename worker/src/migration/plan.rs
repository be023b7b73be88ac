//! Plans the moves of a migration: the new path of each file of an older memory.

use super::older_job::{self, skill_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum depth of directories that are searched.
const MAX_DEPTH: usize = 16;

/// The directory of an older memory that holds its jobs.
const JOBS: &str = "jobs";

/// The directories of an older memory. A skill directory has directories with the same names.
const DIRECTORIES: [&str; 3] = [JOBS, "logs", "focus-cache"];

/// A file that is moved. Both paths are relative to the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The current path.
    pub from: PathBuf,
    /// The new path.
    pub to: PathBuf,
}

/// A file that is not moved.
#[derive(Debug)]
pub struct Unmoved {
    /// The path, relative to the memory.
    pub file: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a file is not moved.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The Skill of the job is unknown.
    #[error(transparent)]
    Job(#[from] older_job::Error),
    /// The file belongs to a job that is not moved.
    #[error("it belongs to the job {0}, which stays")]
    JobStays(String),
    /// The file may belong to jobs of several Skills.
    #[error("several Skills have a job {id}, and the file may belong to any of them: {}", skills.join(", "))]
    Ambiguous {
        /// The id of the jobs.
        id: String,
        /// Their Skills.
        skills: Vec<String>,
    },
    /// The file is outside of the known directories.
    #[error("it is not in one of the directories of an older memory: {}", DIRECTORIES.join(", "))]
    UnknownDirectory,
    /// The directory is too deep.
    #[error("it is more than {MAX_DEPTH} directories deep")]
    TooDeep,
    /// The file is a link, a pipe or another special file.
    #[error("it is not a regular file")]
    NotAFile,
    /// Moving the file failed, or would fail.
    #[error(transparent)]
    Move(#[from] super::moving::Error),
}

/// The moves that migrate an older memory.
#[derive(Debug, Default)]
pub struct Plan {
    /// The moves, sorted by the current path, with the job files last.
    pub moves: Vec<Move>,
    /// The files that are not moved.
    pub unmoved: Vec<Unmoved>,
}

/// Plans the moves of all files of `from`, a directory in `memory`:
/// - A job file goes to the Skill that it names, or to `default_skill` if it names none.
/// - A file that is named after a job goes to the Skill of that job.
/// - Any other file goes to `default_skill`.
///
/// Job files are moved last. So after an interruption, they still determine the Skills of the remaining files.
///
/// # Errors
/// If a directory cannot be read.
pub fn plan(memory: &Path, from: &Path, default_skill: &str) -> io::Result<Plan> {
    let mut plan = Plan::default();
    let mut files = Vec::new();
    walk(memory, from, 0, &mut files, &mut plan.unmoved)?;
    files.sort();
    // The path of a file within `from`.
    let inner = |file: &Path| file.strip_prefix(from.strip_prefix(memory).unwrap_or(from)).map(Path::to_owned).ok();
    let (jobs, files): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(|file| {
        inner(file).is_some_and(|inner| inner.starts_with(JOBS)) && file.extension().is_some_and(|end| end == "json")
    });
    let mut skills = SkillsById::default();
    let mut job_moves = Vec::new();
    for file in jobs {
        let Some(inner) = inner(&file) else { continue };
        let skill = skill_of(&memory.join(&file)).map(|skill| skill.unwrap_or_else(|| default_skill.to_owned()));
        skills.add(&file, skill.as_ref().ok());
        match skill {
            Ok(skill) => job_moves.push(Move { to: Path::new(&skill).join(inner), from: file }),
            Err(error) => plan.unmoved.push(Unmoved { file, reason: error.into() }),
        }
    }
    for file in files {
        let Some(inner) = inner(&file) else { continue };
        let skill = if DIRECTORIES.iter().any(|known| inner.starts_with(known)) {
            skills.find(&inner).map(|skill| skill.unwrap_or(default_skill))
        } else {
            Err(Reason::UnknownDirectory)
        };
        match skill {
            Ok(skill) => plan.moves.push(Move { to: Path::new(skill).join(&inner), from: file }),
            Err(reason) => plan.unmoved.push(Unmoved { file, reason }),
        }
    }
    plan.moves.extend(job_moves);
    Ok(plan)
}

/// The Skills of the jobs, by the ids of the jobs. Several directories may have a job of the same id.
#[derive(Default)]
struct SkillsById(BTreeMap<String, Skills>);

/// The Skills of the jobs of one id.
#[derive(Default)]
struct Skills {
    names: BTreeSet<String>,
    /// True if the Skill of one of these jobs is unknown.
    has_unknown: bool,
}

impl SkillsById {
    /// Adds the Skill of a job; `None` if it is unknown.
    fn add(&mut self, job: &Path, skill: Option<&String>) {
        let id = job.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let skills = self.0.entry(id).or_default();
        skills.has_unknown |= skill.is_none();
        skills.names.extend(skill.cloned());
    }

    /// Returns the Skill of the job that a file is named after, as in `job_1.log`. Otherwise, returns the Skill of the job that
    /// the nearest directory is named after, as in `logs/job_1/trace`. Returns `None` if there is no such job.
    ///
    /// # Errors
    /// If the Skill of the job is unknown, or several Skills have a job of that id.
    fn find(&self, inner: &Path) -> Result<Option<&str>, Reason> {
        // The first part is the directory that all Skills have, such as `logs`.
        let parts: Vec<_> = inner.iter().skip(1).map(|name| name.to_string_lossy()).collect();
        let Some((file, directories)) = parts.split_last() else { return Ok(None) };
        // The longest id wins: `job_1.2.log` belongs to `job_1.2` and not to `job_1`.
        let by_file_name = self.0.iter().filter(|(id, _)| is_named_after(file, id)).max_by_key(|(id, _)| id.len());
        let by_directory = || directories.iter().rev().find_map(|name| self.0.get_key_value(name.as_ref()));
        let Some((id, Skills { names, has_unknown })) = by_file_name.or_else(by_directory) else { return Ok(None) };
        let mut skills = names.iter();
        match (skills.next(), skills.next(), has_unknown) {
            (Some(skill), None, false) => Ok(Some(skill)),
            (_, _, true) => Err(Reason::JobStays(id.clone())),
            (_, _, false) => Err(Reason::Ambiguous { id: id.clone(), skills: names.iter().cloned().collect() }),
        }
    }
}

/// Returns whether a file is named after a job: `job_12.log` is not named after `job_1`.
fn is_named_after(file: &str, id: &str) -> bool {
    let rest = file.strip_prefix(id);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
}

/// Adds the files below a directory to `files`, by their paths relative to the memory. Does not follow links. Adds links, special
/// files and directories that are too deep to `unmoved`.
fn walk(
    memory: &Path,
    dir: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    unmoved: &mut Vec<Unmoved>,
) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let file = path.strip_prefix(memory).unwrap_or(&path).to_owned();
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(memory, &path, depth + 1, files, unmoved)?;
        } else if kind.is_file() {
            files.push(file);
        } else {
            let reason = if kind.is_dir() { Reason::TooDeep } else { Reason::NotAFile };
            unmoved.push(Unmoved { file, reason });
        }
    }
    Ok(())
}

/// Removes a directory and the directories below it if they are empty.
pub fn remove_empty(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // This fails if the directory is not empty.
    let _ = fs::remove_dir(dir);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn memory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let memory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = memory.path().join("workspace").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        memory
    }

    fn planned(memory: &tempfile::TempDir) -> (Vec<String>, Vec<String>) {
        let plan = plan(memory.path(), &memory.path().join("workspace"), "sw-dev-agent").unwrap();
        let stays = plan.unmoved.iter().map(|unmoved| unmoved.file.display().to_string());
        (plan.moves.iter().map(|step| step.to.display().to_string()).collect(), stays.collect())
    }

    #[test]
    fn a_job_and_the_files_named_after_it_go_to_its_skill() {
        let memory = memory(&[
            ("jobs/job_1.json", r#"{"id": "job_1", "skillSlug": "cs-tier-1", "goal": "x"}"#),
            ("jobs/job_12.json", r#"{"id": "job_12", "__skill": {"id": "devops-tier-1"}}"#),
            ("jobs/job_2.json", r#"{"id": "job_2"}"#),
            ("jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "", "__skill": {"id": ""}}"#),
            ("jobs/job_4.json", r#"{"skillSlug": "", "__skill": {"id": "cs-tier-1"}}"#),
            ("logs/job_1.log", ""),
            ("logs/job_12/trace.log", ""),
            ("logs/ai-calls.log", ""),
            ("focus-cache/abc", ""),
        ]);
        let (moves, stays) = planned(&memory);
        assert_eq!(
            moves,
            [
                "sw-dev-agent/focus-cache/abc",
                "sw-dev-agent/logs/ai-calls.log",
                "cs-tier-1/logs/job_1.log",
                "devops-tier-1/logs/job_12/trace.log",
                "cs-tier-1/jobs/job_1.json",
                "devops-tier-1/jobs/job_12.json",
                "sw-dev-agent/jobs/job_2.json",
                "sw-dev-agent/jobs/job_3.json",
                "cs-tier-1/jobs/job_4.json",
            ]
        );
        assert!(stays.is_empty(), "{stays:?}");
    }

    const CS: &str = r#"{"skillSlug": "cs"}"#;
    const OPS: &str = r#"{"skillSlug": "ops"}"#;

    #[rstest]
    #[case::one_id_twice(&[("jobs/x/a.json", CS), ("jobs/y/a.json", OPS)], &["cs/jobs/x/a.json", "ops/jobs/y/a.json"])]
    #[case::an_id_like_a_file(&[("jobs/a.json", CS), ("jobs/a.json.json", OPS)], &["cs/jobs/a.json", "ops/jobs/a.json.json"])]
    #[case::an_id_like_a_directory(
        &[("jobs/a.json", OPS), ("jobs/jobs.json", CS), ("jobs/b/b.txt", ""), ("jobs/logs.json", CS), ("logs/x.log", "")],
        &["sw-dev-agent/jobs/b/b.txt", "sw-dev-agent/logs/x.log", "ops/jobs/a.json", "cs/jobs/jobs.json", "cs/jobs/logs.json"]
    )]
    #[case::the_name_before_the_directory(
        &[("jobs/a.json", CS), ("jobs/b.json", OPS), ("logs/a/b.log", ""), ("logs/a/b/c", ""), ("logs/ab/x", "")],
        &["ops/logs/a/b/c", "ops/logs/a/b.log", "sw-dev-agent/logs/ab/x", "cs/jobs/a.json", "ops/jobs/b.json"]
    )]
    fn a_job_goes_to_its_skill_despite_similar_names(#[case] files: &[(&str, &str)], #[case] expected: &[&str]) {
        assert_eq!(planned(&memory(files)), (expected.iter().map(|to| (*to).to_owned()).collect(), Vec::new()));
    }

    #[test]
    fn a_log_that_may_belong_to_several_jobs_stays() {
        let memory = memory(&[
            ("jobs/x/a.json", CS),
            ("jobs/y/a.json", OPS),
            ("jobs/x/b.json", CS),
            ("jobs/y/b.json", CS),
            ("jobs/cut.json", "{"),
            ("logs/a.log", ""),
            ("logs/b.log", ""),
            ("logs/cut.log", ""),
        ]);
        let (moves, stays) = planned(&memory);
        assert!(moves.contains(&"cs/logs/b.log".to_owned()), "{moves:?}");
        assert_eq!(stays, ["jobs/cut.json", "logs/a.log", "logs/cut.log"].map(|name| format!("workspace/{name}")));
    }

    #[test]
    fn a_file_without_a_known_skill_stays() {
        let memory = memory(&[
            ("jobs/cut.json", r#"{"skillSlug": "cs"#),
            ("jobs/away.json", r#"{"skillSlug": "../../etc"}"#),
            ("settings.json", "{}"),
        ]);
        std::os::unix::fs::symlink("/etc/passwd", memory.path().join("workspace/jobs/link.json")).unwrap();
        let (moves, mut stays) = planned(&memory);
        stays.sort();
        let expected = ["jobs/away.json", "jobs/cut.json", "jobs/link.json", "settings.json"];
        assert_eq!(stays, expected.map(|name| format!("workspace/{name}")));
        assert!(moves.is_empty(), "{moves:?}");
    }
}
