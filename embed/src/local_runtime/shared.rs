//! The part of a tenant that all its callers share.

use super::jobs::StoredJob;
use super::running::RunningJobs;
use super::thread::{self, Begin};
use crate::error::Error;
use crate::run::options::RunOptions;
use std::sync::Arc;

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
