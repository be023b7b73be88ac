//! The file of a Job, `jobs/<key>.json`. It is the record of a Job that has ended, or a job that the older
//! runtime (the one before Bloomery) wrote.

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

/// A Job, read from its file.
#[derive(Debug, Serialize)]
pub(super) struct RecordedJob {
    /// The Job's key.
    pub(super) job: String,
    /// The name of its Skill.
    pub(super) skill: String,
    /// The goal.
    pub(super) goal: String,
    /// The state; `None` for a job of the older runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    /// True for a job of the older runtime that was not migrated.
    #[serde(skip)]
    pub(super) is_unmigrated: bool,
    /// The file.
    pub(super) file: PathBuf,
}

/// The part of a Job's status that a record has.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// The phase.
    pub(super) phase: Phase,
    /// The outcome.
    pub(super) outcome: Outcome,
    /// The full answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<FullResult>,
    /// The usage.
    pub(super) usage: Usage,
    /// The end of the log.
    pub(super) log: LogPosition,
}

impl RecordedJob {
    /// Returns the word that is shown instead of a phase for a job of the older runtime.
    pub(super) fn migration_state(&self) -> &'static str {
        if self.is_unmigrated { "NotMigrated" } else { "Migrated" }
    }
}

/// Reads the file of a Job. Returns `None` if the file does not exist, or is not a JSON object.
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
    let (job, skill, is_unmigrated) =
        (key.to_owned(), directory.name.clone(), older_jobs::is_older_jobs_dir(&directory.dir));
    if let Ok(Record { goal, outcome: Some(outcome), result, usage, log, .. }) = serde_json::from_slice(&text) {
        let status = Status { phase: outcome.phase(), outcome, result, usage, log };
        return Ok(Some(RecordedJob { job, skill, goal, status: Some(status), is_unmigrated: false, file }));
    }
    // The older runtime stored each job as a JSON object, usually with a `goal`.
    let Ok(Value::Object(older)) = serde_json::from_slice(&text) else { return Ok(None) };
    let goal = older.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(RecordedJob { job, skill, goal, status: None, is_unmigrated, file }))
}
