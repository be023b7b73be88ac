//! Jobs of an older memory, which the runtime before Bloomery wrote. An older memory has one directory with the jobs of all Skills. A
//! memory of Bloomery has one directory for each Skill.

use crate::local::{DEFAULT_MEMORY, SKILL_FILE};
use crate::text;
use bloomery_skills::names::name_fault;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The directory in an older memory that holds the jobs of all Skills.
pub const OLDER_JOBS_DIR: &str = "workspace";

/// The maximum size of a job file, in bytes.
pub const MAX_JOB_BYTES: u64 = 64 * 1024 * 1024;

/// The fields of an older job file that name its Skill.
#[derive(Deserialize)]
struct OlderJob {
    #[serde(rename = "skillSlug")]
    slug: Option<String>,
    #[serde(rename = "__skill")]
    skill: Option<OlderSkill>,
}

#[derive(Deserialize)]
struct OlderSkill {
    id: Option<String>,
}

/// The reason why the Skill of an older job cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file is too large.
    #[error("it is larger than {MAX_JOB_BYTES} bytes")]
    TooLarge,
    /// The file is not a job.
    #[error("it is not a job: {0}")]
    NotAJob(#[source] serde_json::Error),
    /// The name of its Skill is invalid.
    #[error("the name of its Skill {0}")]
    InvalidSkill(String),
}

/// Returns the Skill that an older job names, if it names one.
///
/// # Errors
/// If the file cannot be read, is too large or is not a job, or if the name is invalid.
pub fn skill_of(file: &Path) -> Result<Option<String>, Error> {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_JOB_BYTES + 1).read_to_end(&mut text));
    read.map_err(Error::Unreadable)?;
    if text.len() as u64 > MAX_JOB_BYTES {
        return Err(Error::TooLarge);
    }
    let job: OlderJob = serde_json::from_slice(&text).map_err(Error::NotAJob)?;
    // The older runtime wrote an empty name for a job without a Skill.
    let is_named = |name: &String| !name.is_empty();
    let skill = job.skill.and_then(|skill| skill.id).filter(is_named);
    let Some(id) = job.slug.filter(is_named).or(skill) else { return Ok(None) };
    match name_fault(&id) {
        None => Ok(Some(id)),
        Some(fault) => Err(Error::InvalidSkill(fault)),
    }
}

/// Returns whether an older job names this Skill.
pub fn belongs_to(job: &Path, skill: &str) -> bool {
    skill_of(job).is_ok_and(|named| named.as_deref() == Some(skill))
}

/// Returns whether a directory is the one in an older memory that holds the jobs of all Skills. Its name is [`OLDER_JOBS_DIR`], and it
/// has no Skill file.
pub fn is_older_jobs_dir(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == OLDER_JOBS_DIR) && !dir.join(SKILL_FILE).exists()
}

/// Returns instructions to move older jobs out of the directory `from`, so that a Skill of the same name can use the directory.
pub fn rename_hint(memory: &Path, from: &str) -> String {
    let quoted = |path: PathBuf| text::shell_quoted(&path.display().to_string());
    let older = format!("{from}-older");
    let memory_option = if memory == Path::new(DEFAULT_MEMORY) {
        String::new()
    } else {
        format!(" --memory {}", quoted(memory.to_owned()))
    };
    format!(
        "rename the directory and migrate its jobs from there: mv {} {} && bloomery migrate{memory_option} --from {} --apply. Or, \
         if all these jobs belong to the Skill {from}, store the file of this Skill as {}",
        quoted(memory.join(from)),
        quoted(memory.join(&older)),
        text::shell_quoted(&older),
        memory.join(from).join(SKILL_FILE).display()
    )
}
