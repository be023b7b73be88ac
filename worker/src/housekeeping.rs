//! Keeps a skill directory small: measures it, reports its size, and removes the logs of ended runs that no Job needs.
//!
//! A worker cannot know which Jobs exist. So it reports the run keys of the logs that exceed the bounds, and the operator answers which
//! of them no Job needs. Everything happens in a thread beside the run, and nothing depends on its success.

mod prune;
mod retention;
mod survey;

pub use retention::Bounds;

use crate::shared_cache;
use bloomery_crds::report::MemorySurvey;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};
use tokio::sync::{oneshot, watch};

/// The size of the thread's stack, in bytes. A node may have many workers.
const STACK_BYTES: usize = 256 * 1024;

/// The thread that keeps a skill directory small.
#[derive(Debug)]
pub struct Housekeeper {
    surveys: watch::Receiver<Option<MemorySurvey>>,
    finished: oneshot::Receiver<()>,
}

/// Connects a [`Housekeeper`] with the task that reports.
#[derive(Debug)]
pub struct SurveyLink {
    /// The latest survey.
    pub surveys: watch::Receiver<Option<MemorySurvey>>,
    /// Receives the run keys whose logs no Job needs.
    pub prune: mpsc::Sender<Vec<String>>,
}

impl SurveyLink {
    /// Returns a link without a housekeeper, for a run that has ended before.
    pub fn unconnected() -> Self {
        Self { surveys: watch::channel(None).1, prune: mpsc::channel().0 }
    }
}

/// A skill directory, and the bounds of its logs.
#[derive(Debug, Clone)]
struct Household {
    memory: PathBuf,
    own_key: String,
    bounds: Bounds,
}

impl Housekeeper {
    /// Starts the thread for the skill directory `memory`. `own_key` is the run key of this worker, whose log is never pruned.
    pub fn start(memory: &Path, own_key: &str, bounds: Bounds) -> (Self, SurveyLink) {
        let (latest, surveys) = watch::channel(None);
        let (prune, to_prune) = mpsc::channel();
        let (finish, finished) = oneshot::channel();
        let household = Household { memory: memory.to_owned(), own_key: own_key.to_owned(), bounds };
        let started = thread::Builder::new().name("housekeeping".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            household.keep(&latest, &to_prune);
            let _ = finish.send(());
        });
        if let Err(error) = started {
            tracing::warn!(
                "the Skill's memory is neither measured nor pruned, because a thread cannot be started: {error}"
            );
        }
        (Self { surveys: surveys.clone(), finished }, SurveyLink { surveys, prune })
    }

    /// Waits until the first survey is complete, for a limited time.
    pub async fn wait_for_survey(&mut self, within: Duration) {
        let _ = tokio::time::timeout(within, self.surveys.wait_for(Option::is_some)).await;
    }

    /// Waits until the requested logs are pruned, for a limited time. The [`SurveyLink`] must be dropped.
    pub async fn finish(self, within: Duration) {
        let Self { surveys, finished } = self;
        // Shows the thread that nobody reads another survey.
        drop(surveys);
        let _ = tokio::time::timeout(within, finished).await;
    }
}

impl Household {
    fn keep(&self, latest: &watch::Sender<Option<MemorySurvey>>, to_prune: &mpsc::Receiver<Vec<String>>) {
        prune::remove_leftovers(&self.memory);
        shared_cache::remove_expired(&self.memory, SystemTime::now());
        while !latest.is_closed() {
            let survey = survey::survey(&self.memory, &self.own_key, self.bounds, SystemTime::now());
            let offered = survey.prunable.clone();
            latest.send_replace(Some(survey));
            let Ok(keys) = to_prune.recv() else { return };
            for key in keys.iter().filter(|key| offered.contains(key)) {
                match prune::prune(&self.memory, key) {
                    Ok(()) => tracing::info!("pruned the log of the ended run {key}; its outcome record stays"),
                    Err(error) => tracing::warn!("the log of the ended run {key} cannot be pruned: {error}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
