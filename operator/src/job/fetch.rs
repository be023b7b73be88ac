//! Fetches the inputs of a decision on a Job: from the caches, and from the API server where a cache may be behind.

pub mod attempt;

use super::call_not_started::matches_approval;
use super::decide::Facts;
use super::ending::EndCause;
use super::pods::WorkerPod;
use super::replies;
use crate::approval::evaluate::{ApprovalUpdate, CallApprovals, call_not_started, withdrawal};
use crate::approval::{approval_names, policy, store};
use crate::caches::Guarded;
use crate::children::state::has_news;
use crate::context::Context;
use crate::error::Error;
use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::run::GivenReply;
use bloomery_crds::v1alpha1::{Approval, Job, JobStatus, Skill, whole_seconds};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::core::{Resource, ResourceExt};
use std::sync::Arc;
use std::time::Duration;

/// A Job, and the inputs of a decision on it.
pub struct FetchedJob {
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
    /// Its Skill, unless the Job has ended.
    pub skill: Option<Arc<Guarded<Skill>>>,
    /// Its pods, at most one for each attempt.
    pub pods: Vec<WorkerPod>,
    /// The held call that people decide on, and its Approvals, if the Job waits for one.
    pub call_approvals: Option<CallApprovals>,
    /// The updates that its Approvals still need, if the Job has ended.
    pub open_approval_updates: Vec<ApprovalUpdate>,
    /// True if another Job continues this one and has not started.
    pub has_pending_follow_up: bool,
    /// True if an open child has ended, was refused or was deleted, or if no child is open.
    pub has_child_news: bool,
    /// True if the namespace is suspended.
    pub suspended: bool,
    /// The time that the Job may wait for a reply.
    pub reply_expiry: Option<SignedDuration>,
}

impl FetchedJob {
    /// The inputs of a decision.
    pub fn facts(&self, retention: SignedDuration, ending: Option<(EndCause, Timestamp)>, now: Timestamp) -> Facts<'_> {
        Facts {
            job: (&self.name, &self.uid),
            status: &self.status,
            pods: &self.pods,
            call_approvals: self.call_approvals.as_ref(),
            open_approval_updates: &self.open_approval_updates,
            ending,
            suspended: self.suspended,
            start_after: None,
            ttl_seconds: self.job.spec.ttl_seconds_after_finished,
            answers: replies::answers(&self.job.spec, &self.status),
            has_child_news: self.has_child_news,
            reply_expiry: self.reply_expiry,
            has_pending_follow_up: self.has_pending_follow_up,
            retention,
            now,
        }
    }

    /// Returns why the operator ends the Job; none if it does not end the Job. A deleted Skill ends only a Job that has
    /// started. A Job that has not started waits for the Skill. A child ends as cancelled once it has lost its parent.
    ///
    /// Once the status records that the Skill was deleted, the Job ends even if the Skill is created again: its worker
    /// may have received that directive already.
    pub fn end_cause(&self, is_cancelled: bool) -> Option<EndCause> {
        let is_skill_gone = || self.skill.as_ref().is_none_or(|skill| skill.meta().deletion_timestamp.is_some());
        if self.status.is_terminal() {
            None
        } else if is_cancelled {
            Some(EndCause::Cancelled)
        } else if (self.status.skill_revision.is_some() && is_skill_gone())
            || EndCause::recorded(&self.status) == Some(EndCause::SkillDeleted)
        {
            Some(EndCause::SkillDeleted)
        } else {
            None
        }
    }

    /// The replies that the conversation has not received, according to the status.
    pub fn pending_replies(&self) -> impl Iterator<Item = GivenReply> {
        self.job.spec.pending_replies(&self.status)
    }
}

/// Fetches the inputs of a decision on a Job; none for a Job that is being deleted, which needs no further action.
pub async fn fetch(context: &Context, job: Job, now: Timestamp) -> Result<Option<FetchedJob>, Error> {
    let Some(uid) = job.uid().filter(|_| job.metadata.deletion_timestamp.is_none()) else { return Ok(None) };
    let (namespace, name) = (job.namespace().unwrap_or_default(), job.name_any());
    let mut fetched = FetchedJob {
        status: job.status.clone().unwrap_or_default(),
        suspended: context.caches.is_suspended(&namespace),
        has_child_news: has_news(&context.caches, &job),
        job,
        namespace,
        name,
        uid,
        skill: None,
        pods: Vec::new(),
        call_approvals: None,
        open_approval_updates: Vec::new(),
        has_pending_follow_up: false,
        reply_expiry: None,
    };
    if !fetched.status.is_terminal() {
        fetched.skill = fetch_skill(context, &fetched).await?;
        fetched.reply_expiry = reply_expiry(context, fetched.skill.as_deref());
    }
    fetched.pods = fetch_pods(context, &fetched, now).await?;
    fetched.call_approvals = fetch_call_approvals(context, &fetched).await?;
    fetched.open_approval_updates = open_approval_updates(context, &fetched);
    fetched.has_pending_follow_up = has_pending_follow_up(context, &fetched);
    Ok(Some(fetched))
}

/// Fetches the Skill. For a started Job, only the API server can confirm that the Skill is gone.
async fn fetch_skill(context: &Context, fetched: &FetchedJob) -> Result<Option<Arc<Guarded<Skill>>>, Error> {
    let FetchedJob { namespace, job, status, .. } = fetched;
    let name = &job.spec.skill;
    let cached = context.caches.skills.get(namespace, name);
    if cached.is_some() || status.skill_revision.is_none() {
        return Ok(cached);
    }
    let api: Api<Guarded<Skill>> = Api::namespaced(context.client.clone(), namespace);
    let stored = api.get_opt(name).await.map_err(Error::api(format!("read Skill {namespace}/{name}")))?;
    Ok(stored.map(Arc::new))
}

/// Returns the time that a Job may wait for a reply. The current Skill counts: an edit also applies to waiting Jobs.
fn reply_expiry(context: &Context, skill: Option<&Guarded<Skill>>) -> Option<SignedDuration> {
    let engine = skill?.0.as_ref().ok()?.spec.engine.as_ref();
    let of_skill = engine.and_then(|engine| engine.reply_expiry.as_ref()).map(whole_seconds);
    let expiry = of_skill.map_or(context.settings.replies.expiry, Duration::from_secs);
    SignedDuration::try_from(expiry).ok()
}

/// Fetches the Approvals of the held call that people decide on. Only the API server can confirm that one is gone.
async fn fetch_call_approvals(context: &Context, fetched: &FetchedJob) -> Result<Option<CallApprovals>, Error> {
    let FetchedJob { namespace, name, uid, status, .. } = fetched;
    let call = status.waiting_for.as_ref().and_then(|waiting| waiting.call.clone());
    let Some(call) = call.filter(|_| !status.is_terminal()) else { return Ok(None) };
    let mut approvals = Vec::new();
    for name in approval_names(name, uid, &call) {
        let cached = context.caches.approvals.get(namespace, &name);
        let cached = cached.and_then(|cached| cached.0.as_ref().ok().cloned());
        let known = match cached.filter(|cached| !context.statuses.is_stale(cached)) {
            Some(cached) => Some(cached),
            None => store::read(context, namespace, &name).await?,
        };
        approvals.push((name, known.filter(|approval| approval.metadata.deletion_timestamp.is_none())));
    }
    let policy = policy::check(context.settings.approvals.shipped_policies.as_ref(), &context.caches);
    Ok(Some(CallApprovals { call, approvals, policy }))
}

/// Returns the updates for Approvals of an ended Job that are still open, or that approve a call which no worker
/// started. The cache is sufficient: each Approval is read again before it is written.
fn open_approval_updates(context: &Context, fetched: &FetchedJob) -> Vec<ApprovalUpdate> {
    let Some(outcome) = fetched.status.outcome.as_ref().filter(|_| fetched.status.is_terminal()) else {
        return Vec::new();
    };
    let why = if outcome.code == OutcomeCode::Cancelled { "the Job was cancelled" } else { "the Job has ended" };
    let not_started = fetched.status.call_not_started.as_ref();
    let is_not_started = |approval: &Approval| not_started.is_some_and(|call| matches_approval(call, &approval.spec));
    let approvals = context.caches.approvals.find_by_key(&fetched.namespace, &fetched.uid);
    let approvals = approvals.iter().filter_map(|approval| approval.0.as_ref().ok());
    approvals
        .filter(|approval| !context.statuses.is_stale(*approval))
        .filter_map(|approval| {
            withdrawal(approval, why).or_else(|| call_not_started(approval, why).filter(|_| is_not_started(approval)))
        })
        .collect()
}

/// Returns whether a Job that continues this one has not started. A follow-up that has started no longer needs this
/// Job, because its own status records the UID. Returns false for a Job that would not be deleted anyway.
fn has_pending_follow_up(context: &Context, fetched: &FetchedJob) -> bool {
    if !fetched.status.is_terminal() || fetched.job.spec.ttl_seconds_after_finished.is_none() {
        return false;
    }
    let is_pending = |job: &Job| {
        let status = job.status.as_ref();
        job.spec.skill == fetched.job.spec.skill
            && job.uid().as_ref() != Some(&fetched.uid)
            && job.metadata.deletion_timestamp.is_none()
            && !status.is_some_and(|status| status.is_terminal() || status.continued_uid.is_some())
    };
    let follow_ups = context.caches.jobs.find_by_key(&fetched.namespace, &fetched.name);
    follow_ups.iter().filter_map(|job| job.0.as_ref().ok()).any(is_pending)
}

/// Fetches the pods of all attempts from the cache under their computed names, including the next attempt, which may
/// not be recorded yet. Reads the recorded pod from the API server if the cache lacks it.
///
/// A pod that is not the recorded one counts only with the seal of the operator: its termination message can end the Job.
async fn fetch_pods(context: &Context, fetched: &FetchedJob, now: Timestamp) -> Result<Vec<WorkerPod>, Error> {
    let FetchedJob { namespace, name, uid, status, .. } = fetched;
    let recorded = status.attempt.as_ref();
    let last = recorded.map_or(0, |attempt| attempt.number).saturating_add(1);
    let recorded_uid = recorded.and_then(|recorded| recorded.pod_uid.as_ref());
    let is_own = |pod: &Pod| {
        (recorded_uid.is_some() && recorded_uid == pod.metadata.uid.as_ref()) || context.pod_seals.verify(pod)
    };
    let cached = (1..=last).filter_map(|attempt| {
        let pod = context.caches.pods.get(namespace, &names::worker_pod(name, attempt, uid))?;
        is_own(&pod).then(|| WorkerPod::read(&pod, (name, uid), recorded, now))?
    });
    let mut pods: Vec<WorkerPod> = cached.collect();
    if let Some(recorded) = recorded
        && !status.is_terminal()
        && !pods.iter().any(|pod| recorded.pod_uid.as_deref() == Some(&pod.uid))
        && let Some(stored) = stored_pod(context, namespace, &recorded.pod).await?
        && is_own(&stored)
        && let Some(pod) = WorkerPod::read(&stored, (name, uid), Some(recorded), now)
    {
        pods.retain(|other| other.attempt != pod.attempt);
        pods.push(pod);
    }
    Ok(pods)
}

/// Reads a pod from the API server.
pub async fn stored_pod(context: &Context, namespace: &str, name: &str) -> Result<Option<Pod>, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    api.get_opt(name).await.map_err(Error::api(format!("read Pod {namespace}/{name}")))
}
