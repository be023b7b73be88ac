//! Reads the events of a Job once for all of its subscribers: it follows the logs of its pods, with the credentials of one subscriber.

use super::feed::{Feed, Reader};
use super::lines::Lines;
use crate::cluster::follow::{FollowStep, is_at_rest, next_step};
use crate::cluster::{Cluster, pods, state};
use crate::error::{Error, ErrorKind};
use bloomery_crds::v1alpha1::Job;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The delay before a retry.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The time without a line after which a log is read again. A half-open connection is silent for ever.
const MAX_SILENCE: Duration = Duration::from_mins(5);

/// Reads the events of a Job until it has ended. If the API server refuses the requests of a subscriber, or the subscriber leaves, it
/// goes on with the credentials of another one.
pub(super) async fn run(feed: Arc<Feed>, job: Job) {
    let mut followed = BTreeSet::new();
    loop {
        let mut changes = feed.changes();
        let (id, cluster) = match feed.pick() {
            Reader::Member(id, cluster) => (id, cluster),
            Reader::Refused(error) => return feed.fail(error),
            Reader::Nobody => {
                // The sender lives as long as the feed.
                let _ = changes.changed().await;
                continue;
            }
        };
        let read = tokio::select! {
            read = follow(&feed, &cluster, &job, &mut followed) => read,
            () = left(&feed, id) => continue,
        };
        match read {
            Ok(()) => return,
            Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthenticated) => {
                feed.refuse(id, error);
            }
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::TooLate) => return feed.fail(error),
            Err(error) => {
                tracing::warn!(job = job.name_any(), %error, "the events of a Job are interrupted");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Waits until a subscriber has left.
async fn left(feed: &Feed, id: u64) {
    let mut changes = feed.changes();
    while feed.has_member(id) {
        // The sender lives as long as the feed.
        let _ = changes.changed().await;
    }
}

/// Follows the logs of the pods in turn until the Job has ended. `followed` has the UIDs of the pods whose logs are read.
async fn follow(feed: &Feed, cluster: &Cluster, job: &Job, followed: &mut BTreeSet<String>) -> Result<(), Error> {
    if !pods::pods(cluster, job).await?.iter().any(pods::has_started) {
        feed.expect(job);
    }
    let mut stops: fn(&Job) -> bool = is_at_rest;
    loop {
        match next_step(cluster, job, followed, stops).await? {
            FollowStep::Pod(pod) => {
                read_log(feed, cluster, &pod.name_any()).await?;
                followed.extend(pod.uid());
                stops = is_at_rest;
            }
            FollowStep::Stop(job) => {
                feed.expect(&job);
                if state::has_ended(&job) {
                    return Ok(());
                }
                // A Job that waits for people has no event until it has another pod.
                stops = state::has_ended;
            }
        }
    }
}

/// Adds the events in the log of a pod until the pod ends.
async fn read_log(feed: &Feed, cluster: &Cluster, pod: &str) -> Result<(), Error> {
    let Some(log) = pods::open_log(cluster, pod, true).await? else { return Ok(()) };
    let mut lines = Lines::new(log, pod);
    loop {
        let silent = |_| Error::new(ErrorKind::Unavailable, format!("the log of the pod {pod} is silent"));
        match tokio::time::timeout(MAX_SILENCE, lines.next()).await.map_err(silent)?? {
            Some(line) => drop(feed.add(line)),
            None => return pods::check_end(cluster, pod).await,
        }
    }
}
