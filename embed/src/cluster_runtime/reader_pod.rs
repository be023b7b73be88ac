//! A reader pod, and the lines of the log that it prints.

use super::lines::Lines;
use crate::cluster::jobs::Client;
use crate::cluster::{Cluster, pods, reader};
use crate::error::Error;
use bloomery_crds::v1alpha1::Job;

/// A reader pod. [`ReaderPod::delete`] must be called.
pub(super) struct ReaderPod {
    cluster: Cluster,
    name: String,
    lines: Option<Lines>,
}

impl ReaderPod {
    /// Creates a pod that reads the log of a Job, with the rights of the caller.
    ///
    /// # Errors
    /// If the caller lacks a right, the Job is deleted, or it has no log.
    pub(super) async fn create(cluster: &Cluster, job: &Job, image: Option<String>) -> Result<Self, Error> {
        // The log may have begun since the Job was read.
        let current = Client::new(cluster.clone()).reread(job).await?;
        let name = reader::create(cluster, &current, image, true).await?;
        Ok(Self { cluster: cluster.clone(), name, lines: None })
    }

    /// Reads the next line; `None` at the end of the log.
    ///
    /// # Errors
    /// If the pod cannot start, or cannot read all of the log.
    pub(super) async fn next_line(&mut self) -> Result<Option<&[u8]>, Error> {
        let Self { cluster, name, lines } = self;
        if lines.is_none() {
            *lines = Some(open(cluster, name).await?);
        }
        let Some(lines) = lines else { return Ok(None) };
        let line = lines.next().await?;
        if line.is_none() {
            reader::check_end(cluster, name).await?;
        }
        Ok(line)
    }

    /// Deletes the pod. A pod that cannot be deleted ends by itself.
    pub(super) async fn delete(self) {
        if let Err(error) = reader::delete(&self.cluster, &self.name).await {
            tracing::warn!(%error, "a reader pod is left");
        }
    }
}

/// Waits for the start of the pod, and opens its log.
async fn open(cluster: &Cluster, name: &str) -> Result<Lines, Error> {
    reader::wait_for_start(cluster, name).await?;
    let log = pods::open_log(cluster, name, true).await?;
    let deleted = || Error::failed(format!("the reader pod {name} was deleted while it was reading"));
    Ok(Lines::new(log.ok_or_else(deleted)?, name))
}
