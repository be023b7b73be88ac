//! Creates the children that the worker of a Job requests, and records their phases.
//!
//! The status of the parent has the request before the child is created, so a crash of the operator loses none. The name of a child follows
//! from its call, so it is created at most once.

use super::fetch::FetchedJob;
use super::fetch::attempt::fetch_revision;
use super::plan::earlier;
use super::validate::open_revision;
use crate::children::build::{child_job, is_deleted, is_same_child};
use crate::children::family::lineage;
use crate::children::refusal::{Invocation, refusal};
use crate::children::state;
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use bloomery_crds::outcome::Phase;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{ChildJob, Job, RequestedChild};
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use kube::core::ResourceExt;

/// The delay after a child could not be created because of an error that may be temporary.
const RETRY_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Creates the requested children, unless the Job ends. Returns the record of all children, and when to try again.
pub(super) async fn advance(
    context: &Context,
    fetched: &FetchedJob,
    is_ending: bool,
) -> (Vec<ChildJob>, Option<SignedDuration>) {
    let mut children = fetched.status.children.clone();
    let mut retry = None;
    if fetched.status.is_terminal() {
        return (children, retry);
    }
    for child in &mut children {
        match child.request.clone() {
            Some(_) if is_ending => {}
            Some(request) => match create(context, fetched, child, &request).await {
                Ok(created) => *child = created,
                Err(error) => {
                    let (namespace, job) = (&fetched.namespace, &fetched.name);
                    tracing::warn!(namespace, job, call = child.call, %error, "a child cannot be created now");
                    retry = earlier(retry, Some(RETRY_DELAY));
                }
            },
            // The next report of the worker has the request.
            None if state::has_lost_end(&context.caches, &fetched.job, child) => child.name = None,
            None => child.phase = recorded_phase(child.phase, state::phase(&context.caches, &fetched.job, child)),
        }
    }
    (children, retry)
}

/// Returns the phase to record of a child, given the one that the cache shows. While the child works, the first phase stays, because each
/// change costs a write.
fn recorded_phase(recorded: Option<Phase>, cached: Option<Phase>) -> Option<Phase> {
    let works = |phase: Phase| !phase.is_terminal() && !phase.is_waiting();
    match (recorded, cached) {
        (Some(before), Some(now)) if works(before) && works(now) => recorded,
        (_, Some(_)) => cached,
        (_, None) => recorded,
    }
}

/// Creates a child, or refuses it. Returns its record.
async fn create(
    context: &Context,
    fetched: &FetchedJob,
    child: &ChildJob,
    request: &RequestedChild,
) -> Result<ChildJob, Error> {
    let created = match child_job(&fetched.job, (&child.call, &child.skill), request) {
        Some(wanted) => create_job(context, fetched, (child, request), &wanted).await?.map(|()| wanted.name_any()),
        None => Err("the Job has no UID".to_owned()),
    };
    match created {
        Ok(name) => {
            let record = ChildJob { name: Some(name), phase: Some(Phase::Pending), ..child.clone() };
            let phase = recorded_phase(record.phase, state::phase(&context.caches, &fetched.job, &record));
            Ok(ChildJob { phase, request: None, ..record })
        }
        // The child has existed. It counts as deleted, because its effects stay.
        Err(_) if child.phase.is_some() => {
            let name = Some(state::child_name(&fetched.job, &child.call));
            Ok(ChildJob { name, phase: Some(Phase::Pending), request: None, ..child.clone() })
        }
        Err(why) => {
            let refused = Some(bounded(&why, ChildJob::MAX_REFUSED_BYTES));
            Ok(ChildJob { refused, request: None, ..child.clone() })
        }
    }
}

/// Returns why a child that does not exist is refused; none if it may be created.
async fn refused(
    context: &Context,
    fetched: &FetchedJob,
    (child, request): (&ChildJob, &RequestedChild),
) -> Result<Option<String>, Error> {
    let FetchedJob { job, namespace, status, .. } = fetched;
    let Some(revision) = &status.skill_revision else {
        return Ok(Some("the revision of the Job is not known".to_owned()));
    };
    let allowed = match open_revision(revision, fetch_revision(context, fetched).await?.as_deref()) {
        Ok(revision) => revision.spec.skills,
        Err(wait) => return Ok(Some(wait.message)),
    };
    let target = context.caches.skills.get(namespace, &child.skill);
    let lineage = lineage(&context.caches, job);
    let invocation = Invocation {
        parent: job,
        skill: &child.skill,
        request,
        allowed: &allowed,
        lineage: lineage.as_deref(),
        target: target.as_deref(),
    };
    Ok(refusal(&invocation))
}

/// Creates a child. A child that exists already counts as created: the operator has crashed after it created the child, or the answer of the
/// API server was lost. It is never refused, because it may have had effects. Returns why the child is refused, if it does not exist.
async fn create_job(
    context: &Context,
    fetched: &FetchedJob,
    requested: (&ChildJob, &RequestedChild),
    wanted: &Job,
) -> Result<Result<(), String>, Error> {
    if let Some(found) = existing(context, fetched, wanted).await? {
        return Ok(found);
    }
    if let Some(why) = refused(context, fetched, requested).await? {
        return Ok(Err(why));
    }
    let (namespace, name) = (&fetched.namespace, wanted.name_any());
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.count_write("Job", "create");
    let error = match api.create(&owned::post_params(), wanted).await {
        Ok(_) => {
            tracing::info!(namespace, job = name, parent = fetched.name, "created a child Job");
            return Ok(Ok(()));
        }
        Err(error) => Error::api(format!("create Job {namespace}/{name}"))(error),
    };
    // A refused child is never created, so a webhook that cannot be called refuses none.
    let Some(why) = error.lasting_refusal() else { return Err(error) };
    // The client may have sent the request twice, and the API server may have stored the first one.
    let found = existing(context, fetched, wanted).await?;
    Ok(found.unwrap_or_else(|| Err(format!("the API server refuses the child: {why}"))))
}

/// Returns whether the Job that has the name of a child is the child, or why it is not; none if no Job has the name.
///
/// # Errors
/// If the Job cannot be read, or is a child that is deleted. A new one continues its log once it is gone.
async fn existing(context: &Context, fetched: &FetchedJob, wanted: &Job) -> Result<Option<Result<(), String>>, Error> {
    let (namespace, name) = (&fetched.namespace, wanted.name_any());
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let stored = api.get_opt(&name).await.map_err(Error::api(format!("read Job {namespace}/{name}")))?;
    let Some(stored) = stored else { return Ok(None) };
    if !is_same_child(&stored, wanted) {
        let taken = format!("another Job has the name of the child, {name}: it has another parent, call or goal");
        return Ok(Some(Err(taken)));
    }
    if is_deleted(&stored, &fetched.uid) {
        return Err(Error::Deleting { what: format!("Job {namespace}/{name}") });
    }
    Ok(Some(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::starts(Some(Phase::Pending), Some(Phase::Running), Some(Phase::Pending))]
    #[case::waits(Some(Phase::Pending), Some(Phase::AwaitingApproval), Some(Phase::AwaitingApproval))]
    #[case::waits_for_another(Some(Phase::AwaitingApproval), Some(Phase::AwaitingJob), Some(Phase::AwaitingJob))]
    #[case::resumes(Some(Phase::AwaitingReply), Some(Phase::Queued), Some(Phase::Queued))]
    #[case::ends(Some(Phase::Pending), Some(Phase::Failed), Some(Phase::Failed))]
    #[case::is_gone(Some(Phase::Failed), None, Some(Phase::Failed))]
    fn only_waits_and_the_end_of_a_child_are_recorded(
        #[case] recorded: Option<Phase>,
        #[case] cached: Option<Phase>,
        #[case] expected: Option<Phase>,
    ) {
        assert_eq!(recorded_phase(recorded, cached), expected);
    }
}
