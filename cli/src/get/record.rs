//! What the file of a Job says, `jobs/<key>.json`: the record of one that has ended, or a job of an older memory.

use crate::error::Error;
use crate::local::older_jobs::{self, MAX_JOB_BYTES};
use crate::local::skill_directory::SkillDirectory;
use crate::source;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{LogPosition, Usage};
use bloomery_engine::event::FullResult;
use bloomery_worker::record::Record;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

/// A Job as its file tells of it.
#[derive(Debug, Serialize)]
pub(super) struct RecordedJob {
    /// The Job's key.
    pub(super) job: String,
    /// Its Skill.
    pub(super) skill: String,
    /// What it was to reach.
    pub(super) goal: String,
    /// How it stands; of a job of an older memory, nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    /// Whether it is where an older memory had it, and not yet with its Skill.
    #[serde(skip)]
    pub(super) stays_behind: bool,
    /// The file.
    pub(super) file: PathBuf,
}

/// What a record keeps of a Job's status.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// The stage.
    pub(super) phase: Phase,
    /// The end.
    pub(super) outcome: Outcome,
    /// The answer, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<FullResult>,
    /// What was spent.
    pub(super) usage: Usage,
    /// How far the log went.
    pub(super) log: LogPosition,
}

impl RecordedJob {
    /// The word for how a job of an older memory stands.
    pub(super) fn word(&self) -> &'static str {
        if self.stays_behind { "NotMigrated" } else { "Migrated" }
    }
}

/// Reads the file of a Job; none where there is none, or it is no Job's.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read(directory: &SkillDirectory, key: &str) -> Result<Option<RecordedJob>, Error> {
    let file = directory.record(key);
    let unreadable = |error: io::Error| Error::failed(format!("{} cannot be read: {error}", file.display()));
    let opened = match source::open(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unreadable)?,
    };
    let mut text = Vec::new();
    opened.take(MAX_JOB_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    let (job, skill, stays_behind) =
        (key.to_owned(), directory.name.clone(), older_jobs::is_older_jobs_dir(&directory.dir));
    if let Ok(Record { goal, outcome: Some(outcome), result, usage, log, .. }) = serde_json::from_slice(&text) {
        let status = Status { phase: outcome.phase(), outcome, result, usage, log };
        return Ok(Some(RecordedJob { job, skill, goal, status: Some(status), stays_behind: false, file }));
    }
    // The runtime before this one recorded jobs as objects that say at least what was to be reached, most of them.
    let Ok(Value::Object(older)) = serde_json::from_slice(&text) else { return Ok(None) };
    let goal = older.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(RecordedJob { job, skill, goal, status: None, stays_behind, file }))
}
