//! A Job of the memory, as it is shown.

use super::record::RecordedJob;
use crate::text;
use bloomery_crds::report::Projection;
use bloomery_engine::event::UserQuestion;
use serde::Serialize;
use std::path::PathBuf;

/// A Job and how it stands, as its status on a cluster says it.
#[derive(Debug, Serialize)]
pub(super) struct LoggedJob {
    /// The Job's key.
    pub(super) job: String,
    /// Its Skill.
    pub(super) skill: String,
    /// What it is to reach.
    pub(super) goal: String,
    /// How it stands.
    pub(super) status: Projection,
    /// What only a person at this machine wants to know.
    #[serde(skip)]
    pub(super) here: OnThisMachine,
}

/// What the status of a cluster does not say.
#[derive(Debug)]
pub(super) struct OnThisMachine {
    /// The directory of the log.
    pub(super) log: PathBuf,
    /// How it goes on, where it has not ended.
    pub(super) on: Option<String>,
    /// What is asked and not yet answered.
    pub(super) questions: Vec<UserQuestion>,
}

/// A Job as its log tells of it, or its file.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item {
    /// Its log.
    Logged(Box<LoggedJob>),
    /// Its file.
    Recorded(Box<RecordedJob>),
}

impl Item {
    /// Its name on a line.
    pub(super) fn line(&self) -> String {
        let key = match self {
            Self::Logged(logged) => &logged.job,
            Self::Recorded(recorded) => &recorded.job,
        };
        text::sanitized_line(key) + "\n"
    }
}
