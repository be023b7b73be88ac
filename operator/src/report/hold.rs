//! Holds the response to a report open until the state of a child changes.
//!
//! A held report costs no request to the API server until a child has ended: each change of a cached Job of its family, and of the suspension
//! of a namespace, makes it look again. It keeps its connection and the turn of its pod, but not its body. So other pods are not affected.

use super::directives::{StopDemands, with_interruptions};
use crate::caches::{Change, Guarded};
use crate::children::state::states;
use crate::context::Context;
use bloomery_crds::children::{ChildProgress, WAIT_SECONDS};
use bloomery_crds::report::{Directives, Report};
use bloomery_crds::run::JobIdentity;
use bloomery_crds::v1alpha1::{Job, ParentJob};
use futures::stream::{BoxStream, StreamExt};
use kube::core::{Resource, ResourceExt};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A report whose response may be held open.
#[derive(Debug, Clone)]
pub(super) struct Held {
    job: JobIdentity,
    /// The calls of the open children.
    calls: Vec<String>,
    /// The number of replies that the conversation has received.
    heard: u32,
    until: Instant,
}

impl Held {
    /// Returns the report if it may be held: its worker waits for a child.
    pub(super) fn new(report: &Report) -> Option<Self> {
        let waits = report.wait_seconds > 0 && !report.children.is_empty() && report.end.is_none();
        waits.then(|| Self {
            job: report.job.clone(),
            calls: report.children.iter().map(|child| child.call.clone()).collect(),
            heard: report.projection.replies_heard,
            until: Instant::now() + Duration::from_secs(report.wait_seconds.min(WAIT_SECONDS).into()),
        })
    }

    /// Returns whether a changed Job is the Job of the report, its parent, or one of its children.
    fn concerns(&self, changed: &Guarded<Job>, parent: Option<&ParentJob>) -> bool {
        let JobIdentity { namespace, name, .. } = &self.job;
        let meta = changed.meta();
        let parent_of_changed = changed.0.as_ref().ok().and_then(|job| job.spec.parent.as_ref());
        let is_child = parent_of_changed.is_some_and(|parent| parent.name == *name);
        let is_parent = parent.is_some_and(|parent| meta.name.as_ref() == Some(&parent.name));
        meta.namespace.as_ref() == Some(namespace) && (meta.name.as_ref() == Some(name) || is_child || is_parent)
    }
}

/// Returns `first` once its time is over, or newer directives as soon as the worker has to act on one. The worker acts on a child that is
/// not `Running`, on an end or a suspension of its Job, and on replies that are not in `first`.
pub(super) async fn hold(
    context: &Context,
    held: &Held,
    first: Directives,
    stopping: &CancellationToken,
) -> Directives {
    if stops(&first) || has_news(&first) {
        return first;
    }
    // Subscribed before the cache is read, so that no change is missed.
    let (mut jobs, mut namespaces) = (context.caches.jobs.changes(), context.caches.namespaces.changes());
    loop {
        let Some(job) = current(context, held) else { return first };
        let next = newer(context, held, &job, &first).await;
        if stops(&next) || has_news(&next) || next.replies.len() > first.replies.len() {
            return next;
        }
        tokio::select! {
            () = changed(&mut jobs, held, job.spec.parent.as_ref()) => {}
            // Only a change of its annotations announces a namespace, which is rare.
            _ = namespaces.next() => {}
            () = tokio::time::sleep_until(held.until) => return first,
            () = stopping.cancelled() => return first,
        }
    }
}

/// Waits for a change of the Job of a report, of its parent, or of one of its children.
async fn changed(changes: &mut BoxStream<'static, Change<Guarded<Job>>>, held: &Held, parent: Option<&ParentJob>) {
    while let Some(Change::Touched(job)) = changes.next().await {
        if held.concerns(&job, parent) {
            return;
        }
    }
}

fn has_news(directives: &Directives) -> bool {
    directives.children.iter().any(|child| child.state != ChildProgress::Running)
}

fn stops(directives: &Directives) -> bool {
    directives.cancel || directives.skill_deleted || directives.park
}

/// The cached Job of a report; none if it is gone or cannot be read.
fn current(context: &Context, held: &Held) -> Option<Job> {
    let cached = context.caches.jobs.get(&held.job.namespace, &held.job.name)?;
    cached.0.as_ref().ok().filter(|job| job.uid().as_ref() == Some(&held.job.uid)).cloned()
}

/// Returns the directives with the newest state of the Job and of its children.
async fn newer(context: &Context, held: &Held, job: &Job, first: &Directives) -> Directives {
    let calls: Vec<&str> = held.calls.iter().map(String::as_str).collect();
    let next = with_interruptions(first.clone(), job, StopDemands::read(&context.caches, job), held.heard);
    Directives { children: states(context, job, &calls).await, ..next }
}

#[cfg(test)]
mod tests;
