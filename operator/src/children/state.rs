//! The states of the children of a Job: from the caches, and for an ended child also from the API server, which has its result.

use crate::caches::Caches;
use crate::context::Context;
use bloomery_crds::children::{self, ChildProgress, ChildState, MAX_CHILDREN};
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{ChildJob, Job, JobStatus};
use kube::Api;
use kube::core::ResourceExt;

/// The state of a child, according to the caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It has not ended, or is not created yet.
    Running,
    /// It has ended.
    Ended,
    /// It was not created, for this reason.
    Refused(String),
    /// It was deleted before its end was recorded.
    Deleted,
}

/// Returns the state of the child for a call of this Job, according to the caches.
pub fn seen(caches: &Caches, job: &Job, call: &str) -> Seen {
    let children = job.status.as_ref().map_or(&[][..], |status| &status.children);
    let Some(child) = children.iter().find(|child| child.call == call) else {
        // The status has no room for the request.
        let is_full = children.len() >= MAX_CHILDREN;
        let reason = || format!("the Job has invoked {MAX_CHILDREN} Jobs, which is the maximum");
        return if is_full { Seen::Refused(reason()) } else { Seen::Running };
    };
    if let Some(reason) = &child.refused {
        return Seen::Refused(reason.clone());
    }
    match phase(caches, job, child) {
        Some(phase) if phase.is_terminal() => Seen::Ended,
        // A child whose end is lost is created again.
        None if is_gone(caches, job, child) && !has_lost_end(caches, job, child) => Seen::Deleted,
        Some(_) | None => Seen::Running,
    }
}

/// Returns whether a child was deleted after its end was recorded, and the conversation of its parent lacks this end. The child must be
/// created again: it takes over the outcome in its log.
pub fn has_lost_end(caches: &Caches, job: &Job, child: &ChildJob) -> bool {
    !child.settled && child.phase.is_some_and(Phase::is_terminal) && is_gone(caches, job, child)
}

/// Returns whether a created child does not exist any more.
fn is_gone(caches: &Caches, job: &Job, child: &ChildJob) -> bool {
    let Some(name) = &child.name else { return false };
    let namespace = job.namespace().unwrap_or_default();
    // The cached Job is read first. If it names the child, the cache has had the child, because both are in one watch.
    let is_known =
        caches.jobs.get(&namespace, &job.name_any()).is_some_and(|cached| names_child(cached.0.as_ref().ok(), child));
    is_known && phase(caches, job, child).is_none() && !has_unreadable(caches, &namespace, name)
}

fn names_child(job: Option<&Job>, child: &ChildJob) -> bool {
    let status = job.and_then(|job| job.status.as_ref());
    status
        .is_some_and(|status| status.children.iter().any(|other| other.call == child.call && other.name == child.name))
}

/// Returns whether a Job of this name exists that this version cannot read.
fn has_unreadable(caches: &Caches, namespace: &str, name: &str) -> bool {
    caches.jobs.get(namespace, name).is_some_and(|job| job.0.is_err())
}

/// Returns the phase of a recorded child; none if the cache does not have it.
pub fn phase(caches: &Caches, parent: &Job, child: &ChildJob) -> Option<Phase> {
    let found = caches.jobs.get(&parent.namespace().unwrap_or_default(), child.name.as_ref()?)?;
    let job = found.0.as_ref().ok()?;
    let named = job.spec.parent.as_ref()?;
    let is_child = named.call == child.call && named.name == parent.name_any();
    is_child.then(|| job.status.as_ref().and_then(|status| status.phase).unwrap_or_default())
}

/// The calls of the children whose ends the conversation of a Job lacks.
pub fn open_calls(status: &JobStatus) -> impl Iterator<Item = &str> {
    status.children.iter().filter(|child| !child.settled).map(|child| child.call.as_str())
}

/// Returns whether a Job whose worker has parked for its children needs its next worker: an open one has ended, was not created, was deleted
/// or must be requested again. A Job without an open child has nothing to wait for.
pub fn has_news(caches: &Caches, job: &Job) -> bool {
    let children = job.status.iter().flat_map(|status| &status.children);
    let open: Vec<&ChildJob> = children.filter(|child| !child.settled).collect();
    let is_news = |child: &ChildJob| lacks_request(child) || seen(caches, job, &child.call) != Seen::Running;
    open.is_empty() || open.into_iter().any(is_news)
}

/// Returns whether only the worker can say what to create a child with.
fn lacks_request(child: &ChildJob) -> bool {
    child.name.is_none() && child.request.is_none() && child.refused.is_none()
}

/// Returns the states of the children for these calls of a Job. Reads each ended child from the API server. A child that cannot be read now
/// counts as running, so the worker asks again.
pub async fn states(context: &Context, job: &Job, calls: &[&str]) -> Vec<ChildState> {
    let mut states = Vec::new();
    for call in calls {
        let name = child_name(job, call);
        let state = match seen(&context.caches, job, call) {
            Seen::Running => ChildProgress::Running,
            Seen::Refused(reason) => ChildProgress::Refused { reason },
            Seen::Deleted => ChildProgress::Deleted,
            Seen::Ended => read_end(context, &job.namespace().unwrap_or_default(), &name).await,
        };
        states.push(ChildState { call: (*call).to_owned(), job: name, state });
    }
    states
}

/// Returns the name of the child for a call of a Job.
pub fn child_name(job: &Job, call: &str) -> String {
    children::name(&job.name_any(), &job.spec.skill, job.run_key().unwrap_or_default(), call)
}

async fn read_end(context: &Context, namespace: &str, name: &str) -> ChildProgress {
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    match api.get_opt(name).await {
        Ok(Some(job)) => job.status.as_ref().and_then(end).unwrap_or(ChildProgress::Running),
        // The cache does not show yet that it is gone.
        Ok(None) => ChildProgress::Running,
        Err(error) => {
            tracing::info!(namespace, job = name, %error, "the result of an ended child cannot be read now");
            ChildProgress::Running
        }
    }
}

/// Returns the end of a child; none before it has one.
fn end(status: &JobStatus) -> Option<ChildProgress> {
    let outcome = status.outcome.as_ref()?;
    Some(ChildProgress::ended(
        outcome.clone(),
        status.result.clone(),
        status.usage.as_deref().cloned().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests;
