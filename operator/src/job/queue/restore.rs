//! Restores the places and the queue from the caches, before the first Job is reconciled.

use super::maxima;
use super::observe::queued_job;
use super::scheduler::Scheduler;
use crate::context::Context;
use crate::status::reason_of;
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::pod::has_ended;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use k8s_openapi::jiff::Timestamp;
use kube::core::ResourceExt;
use std::collections::BTreeSet;

/// Fills a scheduler. A Job has a place if one of its pods is alive, or its status says so. The reconciles that follow correct this.
pub(super) fn restore(scheduler: &mut Scheduler, context: &Context, now: Timestamp) {
    let pods = context.caches.pods.store().state();
    let alive = pods.iter().filter(|pod| pod.labels().contains_key(names::LABEL_JOB) && !has_ended(pod));
    let with_pods: BTreeSet<&str> =
        alive.flat_map(|pod| pod.owner_references()).map(|owner| owner.uid.as_str()).collect();
    let cached = context.caches.jobs.store().state();
    let jobs = || cached.iter().filter_map(|job| job.0.as_ref().ok());
    let has_pod = |job: &Job| job.metadata.uid.as_deref().is_some_and(|uid| with_pods.contains(uid)) || is_running(job);
    // The places first, so that no waiting Job gets one that is taken.
    for job in jobs().filter(|job| has_pod(job)) {
        scheduler.start(&queued_job(job), &maxima::of_job(context, job));
    }
    for job in jobs().filter(|job| !has_pod(job)) {
        let Some(status) = &job.status else { continue };
        let refusal = match waits_for(status) {
            Some(Reason::Queued) => None,
            Some(Reason::QuotaExceeded) => conditions::find(&status.conditions, ConditionType::Reconciling),
            _ => continue,
        };
        let refusal = refusal.map(|condition| condition.message.as_str());
        scheduler.restore_waiting(&queued_job(job), &maxima::of_job(context, job), refusal, now);
    }
}

fn is_running(job: &Job) -> bool {
    let phase = job.status.as_ref().and_then(|status| status.phase);
    matches!(phase, Some(Phase::Starting | Phase::Running | Phase::Finalizing))
}

fn waits_for(status: &JobStatus) -> Option<Reason> {
    if status.is_terminal() { None } else { reason_of(&status.conditions, ConditionType::Reconciling) }
}
