//! Jobs of the runtime before Bloomery. Its memory has one directory with the jobs of all Skills.

use bloomery_crds::names::{self, MAX_NAME_BYTES};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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
    #[error(
        "its Skill cannot be named {0:?}: the name of a Skill has at most {MAX_NAME_BYTES} lower-case letters, digits and '-', beginning with a \
         letter and not ending with '-'"
    )]
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
    if names::is_name(&id) { Ok(Some(id)) } else { Err(Error::InvalidSkill(id)) }
}
