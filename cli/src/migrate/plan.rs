//! Which file of an older memory goes where.

use bloomery_skills::names::name_fault;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest job that is read for its Skill, in bytes.
pub const MAX_JOB: u64 = 64 * 1024 * 1024;

/// How deep directories are looked into.
const MAX_DEPTH: usize = 16;

/// Where an older memory had its jobs.
const JOBS: &str = "jobs";

/// What an older memory had, each with its place in a slag.
const DIRECTORIES: [&str; 3] = [JOBS, "logs", "focus-cache"];

/// A file that goes elsewhere; both paths begin at the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// Where it is.
    pub from: PathBuf,
    /// Where it goes.
    pub to: PathBuf,
}

/// A file that stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// Its path, from the memory on.
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of their paths, jobs last.
    pub moves: Vec<Move>,
    /// What nobody can place.
    pub stays: Vec<Stay>,
}

/// What an older job says of its Skill.
#[derive(Deserialize)]
struct Job {
    #[serde(rename = "skillSlug")]
    slug: Option<String>,
    #[serde(rename = "__skill")]
    skill: Option<SkillOfJob>,
}

#[derive(Deserialize)]
struct SkillOfJob {
    id: Option<String>,
}

/// Looks at every file of `from`, which is in `memory`. A job goes to the Skill that it names, what is named like a job goes
/// with it, and the rest to `other`. Jobs are the last of the moves: one that has gone tells nothing of its logs any more.
pub fn plan(memory: &Path, from: &Path, other: &str) -> io::Result<Plan> {
    let mut plan = Plan::default();
    let mut files = Vec::new();
    walk(memory, from, 0, &mut files, &mut plan.stays)?;
    files.sort();
    let inner = |file: &Path| file.strip_prefix(from.strip_prefix(memory).unwrap_or(from)).map(Path::to_owned).ok();
    let (jobs, files): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(|file| {
        inner(file).is_some_and(|inner| inner.starts_with(JOBS)) && file.extension().is_some_and(|end| end == "json")
    });
    let mut skills = Skills::default();
    let mut of_jobs = Vec::new();
    for file in jobs {
        let skill = skill_of(&memory.join(&file)).map(|skill| skill.unwrap_or_else(|| other.to_owned()));
        skills.add(&file, skill.as_ref().ok());
        match (skill, inner(&file)) {
            (Ok(skill), Some(inner)) => of_jobs.push(Move { to: Path::new(&skill).join(inner), from: file }),
            (Ok(_), None) => {}
            (Err(why), _) => plan.stays.push(Stay { file, why }),
        }
    }
    for file in files {
        let Some(inner) = inner(&file) else { continue };
        let skill = if DIRECTORIES.iter().any(|known| inner.starts_with(known)) {
            skills.of_name(&inner).map(|skill| skill.unwrap_or(other))
        } else {
            Err(format!("an older memory has {}, and this is none of them", DIRECTORIES.join(", ")))
        };
        match skill {
            Ok(skill) => plan.moves.push(Move { to: Path::new(skill).join(&inner), from: file }),
            Err(why) => plan.stays.push(Stay { file, why }),
        }
    }
    plan.moves.extend(of_jobs);
    Ok(plan)
}

/// The Skills of the jobs, by the ids of these. Jobs of one id may lie in several directories.
#[derive(Default)]
struct Skills(BTreeMap<String, Named>);

/// What the jobs of one id name.
#[derive(Default)]
struct Named {
    skills: BTreeSet<String>,
    /// One of them cannot be read: its Skill is not known.
    is_unknown: bool,
}

impl Skills {
    fn add(&mut self, job: &Path, skill: Option<&String>) {
        let id = job.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = self.0.entry(id).or_default();
        named.is_unknown |= skill.is_none();
        named.skills.extend(skill.cloned());
    }

    /// The Skill of the job after which a file is named, as `job_1.log`; or else of the job whose id is the name of the
    /// nearest directory below that of all logs: `logs/job_1/trace`. None where there is no such job.
    fn of_name(&self, inner: &Path) -> Result<Option<&str>, String> {
        let names: Vec<_> = inner.iter().skip(1).map(|name| name.to_string_lossy()).collect();
        let Some((file, directories)) = names.split_last() else { return Ok(None) };
        // The longest id counts: `job_1.2.log` is not of `job_1`, where there is a `job_1.2`.
        let own = self.0.iter().filter(|(id, _)| is_of(file, id)).max_by_key(|(id, _)| id.len());
        let above = || directories.iter().rev().find_map(|name| self.0.get_key_value(name.as_ref()));
        let Some((id, Named { skills, is_unknown })) = own.or_else(above) else { return Ok(None) };
        let mut several = skills.iter();
        match (several.next(), several.next(), is_unknown) {
            (Some(skill), None, false) => Ok(Some(skill)),
            (_, _, true) => Err(format!("it is named like the job {id}, which stays")),
            (_, _, false) => {
                let skills: Vec<&str> = skills.iter().map(String::as_str).collect();
                Err(format!(
                    "there are jobs {id} of several Skills, {}: nobody could tell of which it is",
                    skills.join(", ")
                ))
            }
        }
    }
}

/// Whether a file is named after a job: `job_12` is not of `job_1`.
fn is_of(file: &str, id: &str) -> bool {
    let rest = file.strip_prefix(id);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
}

/// The Skill that a job names; none where it names none.
///
/// # Errors
/// Why that cannot be told.
pub fn skill_of(file: &Path) -> Result<Option<String>, String> {
    let mut text = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(MAX_JOB + 1).read_to_end(&mut text));
    opened.map_err(|error| format!("it cannot be read: {error}"))?;
    if text.len() as u64 > MAX_JOB {
        return Err(format!("it is larger than {MAX_JOB} bytes"));
    }
    let job: Job = serde_json::from_slice(without_mark(&text)).map_err(|error| format!("it is no job: {error}"))?;
    // An empty name was none there.
    let named = |name: &String| !name.is_empty();
    let skill = job.skill.and_then(|skill| skill.id).filter(named);
    let Some(id) = job.slug.filter(named).or(skill) else { return Ok(None) };
    match name_fault(&id) {
        None => Ok(Some(id)),
        Some(fault) => Err(format!("the name of its Skill {fault}")),
    }
}

/// A text without the byte order mark that some editors begin one with.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Lists the files below a directory, by their paths from the memory on. Links are not followed.
fn walk(memory: &Path, dir: &Path, depth: usize, files: &mut Vec<PathBuf>, stays: &mut Vec<Stay>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let file = path.strip_prefix(memory).unwrap_or(&path).to_owned();
        let mut stay = |why: &str| stays.push(Stay { file: file.clone(), why: why.to_owned() });
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(memory, &path, depth + 1, files, stays)?;
        } else if kind.is_dir() {
            stay("it lies too deep");
        } else if kind.is_file() {
            files.push(file);
        } else {
            stay("it is no file");
        }
    }
    Ok(())
}

/// Removes the directories in which nothing is left.
pub fn remove_empty(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // It fails where something is left.
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
        let stays = plan.stays.iter().map(|stay| stay.file.display().to_string());
        (plan.moves.iter().map(|step| step.to.display().to_string()).collect(), stays.collect())
    }

    #[test]
    fn a_job_goes_to_its_skill_and_what_is_named_like_it_goes_along() {
        let memory = memory(&[
            ("jobs/job_1.json", r#"{"id": "job_1", "skillSlug": "cs-tier-1", "goal": "x"}"#),
            ("jobs/job_12.json", r#"{"id": "job_12", "__skill": {"id": "devops-tier-1"}}"#),
            ("jobs/job_2.json", r#"{"id": "job_2"}"#),
            ("jobs/job_3.json", r#"{"id": "job_3", "skillSlug": "", "__skill": {"id": ""}}"#),
            ("jobs/job_4.json", "\u{feff}{\"skillSlug\": \"\", \"__skill\": {\"id\": \"cs-tier-1\"}}"),
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
    fn a_job_goes_where_it_says_whatever_others_are_called(#[case] files: &[(&str, &str)], #[case] expected: &[&str]) {
        assert_eq!(planned(&memory(files)), (expected.iter().map(|to| (*to).to_owned()).collect(), Vec::new()));
    }

    #[test]
    fn a_log_of_which_nobody_can_tell_the_job_stays() {
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
    fn what_nobody_can_place_stays() {
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
