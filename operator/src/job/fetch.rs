//! What is known of a Job and of what it depends on: from the caches, and asked for where they may be behind.

use super::call_not_started::CallNotStarted;
use super::decide::Facts;
use super::ending::Ending;
use super::pods::WorkerPod;
use super::replies;
use crate::approval::standing::{Asked, Mark, call_not_started, withdrawal};
use crate::approval::{guard, names_of, settle};
use crate::caches::Guarded;
use crate::context::Context;
use crate::error::Error;
use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::run::GivenReply;
use bloomery_crds::v1alpha1::{Approval, Job, JobStatus, Skill, seconds};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::core::{Resource, ResourceExt};
use std::sync::Arc;
use std::time::Duration;

/// What is known of a Job and of what it depends on.
pub struct Fetched {
    /// The Job.
    pub job: Job,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its status.
    pub status: JobStatus,
    /// Its Skill.
    pub skill: Option<Arc<Guarded<Skill>>>,
    /// Its pods, by attempt.
    pub pods: Vec<WorkerPod>,
    /// The call that people decide on, where the Job waits for that.
    pub asked: Option<Asked>,
    /// What is to be done to Approvals, where the Job has ended.
    pub left_open: Vec<Mark>,
    /// Whether a Job that continues this one has not begun.
    pub continued: bool,
    /// Whether the namespace is suspended.
    pub suspended: bool,
    /// How long it may wait for a reply.
    pub reply_expiry: Option<SignedDuration>,
}

impl Fetched {
    /// What decisions are made of.
    pub fn facts(&self, retention: SignedDuration, ending: Option<(Ending, Timestamp)>, now: Timestamp) -> Facts<'_> {
        Facts {
            job: (&self.name, &self.uid),
            status: &self.status,
            pods: &self.pods,
            asked: self.asked.as_ref(),
            left_open: &self.left_open,
            ending,
            suspended: self.suspended,
            ttl: self.job.spec.ttl_seconds_after_finished,
            answers: replies::answers(&self.job.spec, &self.status),
            reply_expiry: self.reply_expiry,
            continued: self.continued,
            retention,
            now,
        }
    }

    /// Why the Job is to end whatever it does, where it is. One that has not begun waits for its Skill.
    pub fn ending(&self) -> Option<Ending> {
        let is_gone = || self.skill.as_ref().is_none_or(|skill| skill.meta().deletion_timestamp.is_some());
        if self.status.is_terminal() {
            None
        } else if self.job.spec.cancel == Some(true) {
            Some(Ending::Cancelled)
        } else if (self.status.skill_revision.is_some() && is_gone())
            || Ending::recorded(&self.status) == Some(Ending::SkillDeleted)
        {
            Some(Ending::SkillDeleted)
        } else {
            None
        }
    }

    /// What people have said and the conversation has not heard, as far as its status knows.
    pub fn unheard(&self) -> impl Iterator<Item = GivenReply> {
        self.job.spec.unheard(&self.status)
    }
}

/// Gathers what is known of a Job; none of one that is being deleted, for which nothing more is done.
pub async fn seen(context: &Context, job: Job, now: Timestamp) -> Result<Option<Fetched>, Error> {
    let (namespace, name) = (job.namespace().unwrap_or_default(), job.name_any());
    let status = job.status.clone().unwrap_or_default();
    let Some(uid) = job.uid().filter(|_| job.metadata.deletion_timestamp.is_none()) else { return Ok(None) };
    let suspended = context.caches.is_suspended(&namespace);
    let mut seen = Fetched {
        job,
        namespace,
        name,
        uid,
        status,
        skill: None,
        pods: Vec::new(),
        asked: None,
        left_open: Vec::new(),
        continued: false,
        suspended,
        reply_expiry: None,
    };
    if !seen.status.is_terminal() {
        seen.skill = skill(context, &seen).await?;
        seen.reply_expiry = reply_expiry(context, seen.skill.as_deref());
    }
    seen.pods = pods(context, &seen, now).await?;
    seen.asked = asked(context, &seen).await?;
    seen.left_open = left_open(context, &seen);
    seen.continued = is_continued(context, &seen);
    Ok(Some(seen))
}

/// The Skill. One that a started Job depends on is not believed to be gone before the API server says so.
async fn skill(context: &Context, seen: &Fetched) -> Result<Option<Arc<Guarded<Skill>>>, Error> {
    let Fetched { namespace, job, status, .. } = seen;
    let name = &job.spec.skill;
    let cached = context.caches.skills.get(namespace, name);
    if cached.is_some() || status.skill_revision.is_none() {
        return Ok(cached);
    }
    let api: Api<Guarded<Skill>> = Api::namespaced(context.client.clone(), namespace);
    let stored = api.get_opt(name).await.map_err(Error::api(format!("read Skill {namespace}/{name}")))?;
    Ok(stored.map(Arc::new))
}

/// How long a Job may wait for a reply: what its Skill says now, so that those that wait already can be given more time.
fn reply_expiry(context: &Context, skill: Option<&Guarded<Skill>>) -> Option<SignedDuration> {
    let engine = skill?.0.as_ref().ok()?.spec.engine.as_ref();
    let said = engine.and_then(|engine| engine.reply_expiry.as_ref()).map(seconds);
    let expiry = said.map_or(context.settings.replies.expiry, Duration::from_secs);
    SignedDuration::try_from(expiry).ok()
}

/// The call that waits for people, and the Approvals of it. One is not believed to be gone before the API server says so.
async fn asked(context: &Context, seen: &Fetched) -> Result<Option<Asked>, Error> {
    let Fetched { namespace, name, uid, status, .. } = seen;
    let call = status.waiting_for.as_ref().and_then(|waiting| waiting.call.clone());
    let Some(call) = call.filter(|_| !status.is_terminal()) else { return Ok(None) };
    let mut approvals = Vec::new();
    for name in names_of(name, uid, &call) {
        let cached = context.caches.approvals.get(namespace, &name);
        let cached = cached.and_then(|cached| cached.0.as_ref().ok().cloned());
        let known = match cached.filter(|cached| !context.statuses.is_stale(cached)) {
            Some(cached) => Some(cached),
            None => settle::stored(context, namespace, &name).await?,
        };
        approvals.push((name, known.filter(|approval| approval.metadata.deletion_timestamp.is_none())));
    }
    let guard = guard::look(context.settings.approvals.shipped.as_ref(), &context.caches);
    Ok(Some(Asked { call, approvals, guard }))
}

/// What is to be done to the Approvals that are still open, or let a call be made that was not begun, where the Job has ended.
/// The cache is good enough: each is read again before.
fn left_open(context: &Context, seen: &Fetched) -> Vec<Mark> {
    let Some(outcome) = seen.status.outcome.as_ref().filter(|_| seen.status.is_terminal()) else { return Vec::new() };
    let why = if outcome.code == OutcomeCode::Cancelled { "the Job was cancelled" } else { "the Job has ended" };
    let not_started = CallNotStarted::recorded(&seen.status);
    let is_not_started =
        |approval: &Approval| not_started.as_ref().is_some_and(|call| call.is_asked_by(&approval.spec));
    let approvals = context.caches.approvals.found_by(&seen.namespace, &seen.uid);
    let approvals = approvals.iter().filter_map(|approval| approval.0.as_ref().ok());
    approvals
        .filter(|approval| !context.statuses.is_stale(*approval))
        .filter_map(|approval| {
            withdrawal(approval, why).or_else(|| call_not_started(approval, why).filter(|_| is_not_started(approval)))
        })
        .collect()
}

/// Whether a Job continues this one, and has not begun: once it has, it knows what it needs.
fn is_continued(context: &Context, seen: &Fetched) -> bool {
    if !seen.status.is_terminal() || seen.job.spec.ttl_seconds_after_finished.is_none() {
        return false;
    }
    let has_to_begin = |job: &Job| {
        let status = job.status.as_ref();
        job.spec.skill == seen.job.spec.skill
            && job.uid().as_ref() != Some(&seen.uid)
            && job.metadata.deletion_timestamp.is_none()
            && !status.is_some_and(|status| status.is_terminal() || status.continued_uid.is_some())
    };
    let follow_ups = context.caches.jobs.found_by(&seen.namespace, &seen.name);
    follow_ups.iter().filter_map(|job| job.0.as_ref().ok()).any(has_to_begin)
}

/// The pods of all attempts, which have their names of them; the next one too, which may not be recorded yet.
async fn pods(context: &Context, seen: &Fetched, now: Timestamp) -> Result<Vec<WorkerPod>, Error> {
    let Fetched { namespace, name, uid, status, .. } = seen;
    let recorded = status.attempt.as_ref();
    let last = recorded.map_or(0, |attempt| attempt.number).saturating_add(1);
    let cached = (1..=last).filter_map(|attempt| {
        let pod = context.caches.pods.get(namespace, &names::worker_pod(name, attempt, uid))?;
        WorkerPod::read(&pod, uid, recorded, now)
    });
    let mut pods: Vec<WorkerPod> = cached.collect();
    if let Some(recorded) = recorded
        && !status.is_terminal()
        && !pods.iter().any(|pod| recorded.pod_uid.as_deref() == Some(&pod.uid))
        && let Some(stored) = stored_pod(context, namespace, &recorded.pod).await?
        && let Some(pod) = WorkerPod::read(&stored, uid, Some(recorded), now)
    {
        pods.retain(|other| other.attempt != pod.attempt);
        pods.push(pod);
    }
    Ok(pods)
}

/// A pod as it is stored, whatever the cache knows.
pub async fn stored_pod(context: &Context, namespace: &str, name: &str) -> Result<Option<Pod>, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    api.get_opt(name).await.map_err(Error::api(format!("read Pod {namespace}/{name}")))
}
