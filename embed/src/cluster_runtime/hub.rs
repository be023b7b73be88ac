//! The feeds of all Jobs with subscribers.

use super::feed::{Feed, Place, Task};
use super::upstream;
use crate::cluster::Cluster;
use bloomery_crds::v1alpha1::Job;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The feeds, by the UIDs of their Jobs. A feed lives as long as it has subscribers.
#[derive(Default)]
pub(super) struct Hub(Mutex<BTreeMap<String, Running>>);

/// A feed, and the task that reads its events.
struct Running {
    feed: Weak<Feed>,
    upstream: Weak<Task>,
}

impl Hub {
    /// Adds a subscriber to the feed of a Job. The feed begins with the first subscriber.
    pub(super) fn enter(&self, cluster: &Cluster, job: &Job) -> Place {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, running| running.upstream.strong_count() > 0);
        let uid = job.uid().unwrap_or_default();
        let found = running.get(&uid).and_then(|found| Some((found.feed.upgrade()?, found.upstream.upgrade()?)));
        if let Some((feed, upstream)) = found
            && !feed.has_failed()
        {
            return feed.enter(cluster.clone(), upstream);
        }
        let feed = Arc::new(Feed::new());
        let task = tokio::spawn(upstream::run(Arc::clone(&feed), job.clone()));
        let upstream = Arc::new(Task(task.abort_handle()));
        running.insert(uid, Running { feed: Arc::downgrade(&feed), upstream: Arc::downgrade(&upstream) });
        feed.enter(cluster.clone(), upstream)
    }
}
