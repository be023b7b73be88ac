//! A Job of the memory, in the form that `get` shows.

use super::record::RecordedJob;
use crate::text;
use bloomery_crds::report::Projection;
use bloomery_engine::event::UserQuestion;
use serde::Serialize;
use std::path::PathBuf;

/// A Job with a log, in the form of its status on a cluster.
#[derive(Debug, Serialize)]
pub(super) struct LoggedJob {
    /// The Job's key.
    pub(super) job: String,
    /// The name of its Skill.
    pub(super) skill: String,
    /// The goal.
    pub(super) goal: String,
    /// The state.
    pub(super) status: Projection,
    /// Details for a person at this machine.
    #[serde(skip)]
    pub(super) local: LocalDetails,
}

/// Details of a Job on this machine that the status on a cluster does not have.
#[derive(Debug)]
pub(super) struct LocalDetails {
    /// The directory of the log.
    pub(super) log: PathBuf,
    /// The state of a Job that has not ended, and the command that resumes it.
    pub(super) unfinished: Option<String>,
    /// The open questions.
    pub(super) questions: Vec<UserQuestion>,
}

/// A Job, read from its log or its record.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item {
    /// From its log.
    Logged(Box<LoggedJob>),
    /// From its record.
    Recorded(Box<RecordedJob>),
}

impl Item {
    /// Returns the key of the Job as a line.
    pub(super) fn name_line(&self) -> String {
        let key = match self {
            Self::Logged(logged) => &logged.job,
            Self::Recorded(recorded) => &recorded.job,
        };
        text::sanitized_line(key) + "\n"
    }
}
