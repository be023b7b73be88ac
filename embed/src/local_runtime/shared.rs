//! The part of a tenant that all its callers share.

use super::jobs::StoredJob;
use super::running::RunningJobs;
use super::thread::{self, Begin};
use crate::error::Error;
use crate::run::options::RunOptions;
use std::sync::Arc;
use std::time::Duration;

/// The interval at which a new Job looks for the record of the Job that it continues.
const RECORD_INTERVAL: Duration = Duration::from_millis(20);

/// The largest number of intervals for which a new Job waits for that record.
const RECORD_INTERVALS: usize = 100;

/// The part of a tenant that all its callers share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The options of its Jobs, without the parameters of one Job.
    pub(super) options: RunOptions,
    /// The Jobs that this process drives.
    pub(super) running: Arc<RunningJobs>,
}

impl Shared {
    /// Opens a tenant.
    pub(super) fn new(options: RunOptions) -> Arc<Self> {
        Arc::new(Self { options, running: Arc::default() })
    }

    /// Runs a function that blocks, with the stored Job of a key.
    pub(super) async fn with_job<T: Send + 'static>(
        self: &Arc<Self>,
        job: &str,
        read: impl FnOnce(StoredJob) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let key = job.to_owned();
        self.blocking(move |options| read(StoredJob::find(&options.memory, &key)?)).await
    }

    /// Waits for the record of a Job that has ended. This process writes it just after the last event, which clients may have already.
    pub(super) async fn wait_for_record(self: &Arc<Self>, key: &str) {
        for _ in 0..RECORD_INTERVALS {
            if !self.running.is_running(key) {
                return;
            }
            let lacks_record =
                self.with_job(key, |job| Ok(!job.has_record() && job.state()?.conversation.outcome().is_some())).await;
            if !lacks_record.unwrap_or_default() {
                return;
            }
            tokio::time::sleep(RECORD_INTERVAL).await;
        }
    }

    /// Runs a function that blocks.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&RunOptions) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || read(&shared.options)).await;
        done.unwrap_or_else(|error| Err(Error::failed(error.to_string())))
    }

    /// Starts the thread of a Job that has begun. `skill` is its Skill, which is needed if several Skills have a Job of the key.
    pub(super) async fn resume(&self, skill: Option<String>, begin: Begin) -> Result<(), Error> {
        let options = RunOptions { skill, ..self.options.clone() };
        thread::start(Arc::clone(&self.running), options, begin).await.map(drop)
    }
}
