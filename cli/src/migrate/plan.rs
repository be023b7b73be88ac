//! Which file of an older memory goes where.

use bloomery_crds::dialect::name_fault;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest job that is read for its Skill, in bytes.
pub const MAX_JOB: u64 = 64 * 1024 * 1024;

/// How deep directories are looked into.
const MAX_DEPTH: usize = 16;

/// What an older memory had, each with its place in a slag.
const DIRECTORIES: [&str; 3] = ["jobs", "logs", "focus-cache"];

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
    /// In the order of their paths.
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

/// Looks at every file of `from`, which is in `memory`. A job goes to its Skill, what is named like a job goes with it,
/// and the rest to `other`.
pub fn plan(memory: &Path, from: &Path, other: &str) -> io::Result<Plan> {
    let mut plan = Plan::default();
    let mut files = Vec::new();
    walk(memory, from, 0, &mut files, &mut plan.stays)?;
    files.sort();
    let inner = |file: &Path| file.strip_prefix(from.strip_prefix(memory).unwrap_or(from)).map(Path::to_owned).ok();
    let mut skills: BTreeMap<String, String> = BTreeMap::new();
    for file in &files {
        if inner(file).is_some_and(|inner| inner.starts_with("jobs"))
            && file.extension().is_some_and(|end| end == "json")
        {
            match skill_of(&memory.join(file)) {
                Ok(skill) => {
                    let id = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    skills.insert(id, skill.unwrap_or_else(|| other.to_owned()));
                }
                Err(why) => plan.stays.push(Stay { file: file.clone(), why }),
            }
        }
    }
    files.retain(|file| !plan.stays.iter().any(|stay| stay.file == *file));
    for file in files {
        let Some(inner) = inner(&file) else { continue };
        if DIRECTORIES.iter().any(|known| inner.starts_with(known)) {
            let skill = skill_of_name(&inner, &skills).unwrap_or(other);
            plan.moves.push(Move { to: Path::new(skill).join(&inner), from: file });
        } else {
            let why = format!("an older memory has {}, and this is none of them", DIRECTORIES.join(", "));
            plan.stays.push(Stay { file, why });
        }
    }
    Ok(plan)
}

/// The Skill of the job after which a file, or a directory above it, is named: `job_1.json`, `job_1.log`, `job_1/trace`.
/// The longest id counts: `job_12` is not of `job_1`.
fn skill_of_name<'s>(inner: &Path, skills: &'s BTreeMap<String, String>) -> Option<&'s str> {
    let names: Vec<String> = inner.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let is_of = |name: &String, id: &str| {
        let rest = name.strip_prefix(id);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
    };
    let ids = skills.iter().filter(|(id, _)| names.iter().any(|name| is_of(name, id)));
    ids.max_by_key(|(id, _)| id.len()).map(|(_, skill)| skill.as_str())
}

/// The Skill that a job names; none where it names none.
fn skill_of(file: &Path) -> Result<Option<String>, String> {
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
                "cs-tier-1/jobs/job_1.json",
                "devops-tier-1/jobs/job_12.json",
                "sw-dev-agent/jobs/job_2.json",
                "sw-dev-agent/jobs/job_3.json",
                "cs-tier-1/jobs/job_4.json",
                "sw-dev-agent/logs/ai-calls.log",
                "cs-tier-1/logs/job_1.log",
                "devops-tier-1/logs/job_12/trace.log",
            ]
        );
        assert!(stays.is_empty(), "{stays:?}");
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
