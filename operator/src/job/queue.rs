//! The queue of Jobs: which of them may start, within the maxima of the Skill, the namespace and the cluster, and within quotas.
//!
//! [`scheduler`] decides; this module feeds it and wakes the Jobs that it selects. A Job asks for a place just before its inputs are
//! fetched, so a Job that waits costs no request. A Job that gets a place later is woken, and no other. Each reconcile ends with
//! [`Queue::settle`], so a place that is not used is free again.
//!
//! The state is only in memory. A new leader restores it from its caches ([`Queue::restore`]).

mod maxima;
mod observe;
mod quota;
mod restore;
mod scheduler;
mod values;
mod wait;

pub(super) use values::QueueLength;
pub(super) use wait::quota_message;

use super::applied::AppliedPlan;
use super::fetch::FetchedJob;
use super::plan::{Blocked, Plan, earlier};
use super::pods::PodState;
use crate::caches::Guarded;
use crate::context::Context;
use crate::controller::Wake;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::pod::has_ended;
use bloomery_crds::v1alpha1::{Job, Skill};
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::reflector::ObjectRef;
use observe::queued_job;
use scheduler::Scheduler;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use values::{Answer, QueuedJob};

/// The interval for retrying the creation of a pod that a quota refused and that exists already.
const ADOPTION_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The scheduler, and the Jobs that it wakes. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    scheduler: Arc<Mutex<Scheduler>>,
    sender: UnboundedSender<Wake<Job>>,
    receiver: Arc<Mutex<Option<UnboundedReceiver<Wake<Job>>>>>,
}

impl Default for Queue {
    fn default() -> Self {
        let (sender, receiver) = unbounded();
        Self { scheduler: Arc::default(), sender, receiver: Arc::new(Mutex::new(Some(receiver))) }
    }
}

/// Whether a reconcile has asked for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// No: no new pod is to be created.
    NotAsked,
    /// The Job has a place.
    Granted,
    /// The Job waits in the queue.
    Queued,
}

impl Queue {
    /// Asks for a place if the plan starts an attempt whose pod does not exist yet. Without a place, the plan is to wait.
    pub fn admit(&self, context: &Context, fetched: &FetchedJob, plan: Plan, now: Timestamp) -> (Plan, Admission) {
        let mut admission = Admission::NotAsked;
        let plan = plan.and_then(|attempt| {
            if fetched.pods.iter().any(|pod| pod.attempt == attempt) {
                return Ok(attempt);
            }
            // Validation refuses the attempt until the Skill is checked, so a place would go to another Job.
            if observe::waits_for_check(fetched) {
                return Ok(attempt);
            }
            let (job, maxima) = (queued_job(&fetched.job), maxima::of_job(context, &fetched.job));
            let (answer, woken) = self.scheduler().request(&job, &maxima, now);
            self.wake(woken);
            admission = Admission::Queued;
            match answer {
                Answer::Granted => {
                    admission = Admission::Granted;
                    Ok(attempt)
                }
                Answer::Full { scope, running, maximum } => {
                    let namespace = maxima::of_namespace(context, &fetched.namespace);
                    Err(Blocked::Wait(wait::full(&fetched.job, scope, (running, maximum), &namespace)))
                }
                Answer::Quota { message, retry } => Err(Blocked::Wait(wait::quota(&message, retry))),
            }
        });
        (plan, admission)
    }

    /// Records whether the Job has a pod after the applied plan. Returns when to reconcile the Job again, from that time so far.
    pub fn settle(
        &self,
        context: &Context,
        (fetched, admission): (&FetchedJob, Admission),
        (applied, mut requeue_after): (&AppliedPlan, Option<SignedDuration>),
        now: Timestamp,
    ) -> Option<SignedDuration> {
        let is_alive = fetched.pods.iter().any(|pod| matches!(pod.state, PodState::Alive(_)));
        let refusal = match applied {
            AppliedPlan::Waiting(wait, _) if wait.reason == Reason::QuotaExceeded => Some(&wait.message),
            _ => None,
        };
        let woken = match (admission, applied) {
            // A Job with a place and no result is reconciled again soon, for example because a cache is behind.
            (Admission::Queued, _) | (Admission::Granted, AppliedPlan::Nothing) => Vec::new(),
            (Admission::Granted, _) if let Some(message) = refusal => {
                let (retry, woken) = self.scheduler().refuse(&fetched.uid, message, now);
                requeue_after = earlier(requeue_after, retry);
                woken
            }
            (_, AppliedPlan::Started(..)) => self.start(context, &fetched.job),
            // The Skill is checked within moments. Until then, its Jobs keep their turns and their places.
            (Admission::NotAsked, AppliedPlan::Waiting(..)) if observe::waits_for_check(fetched) => Vec::new(),
            (Admission::NotAsked, _) if is_alive => {
                requeue_after = earlier(requeue_after, refusal.map(|_| ADOPTION_RETRY_INTERVAL));
                self.start(context, &fetched.job)
            }
            (Admission::NotAsked | Admission::Granted, _) => self.scheduler().finish(&fetched.uid),
        };
        self.wake(woken);
        requeue_after
    }

    fn start(&self, context: &Context, job: &Job) -> Vec<QueuedJob> {
        let maxima = maxima::of_job(context, job);
        self.scheduler().start(&queued_job(job), &maxima)
    }

    /// Removes a Job that is being deleted from the queue. If it has a pod, it keeps its place until the pod is gone.
    pub fn withdraw(&self, uid: &str) {
        let woken = self.scheduler().withdraw(uid);
        self.wake(woken);
    }

    /// Restores the places and the queue from the caches.
    pub fn restore(&self, context: &Context, now: Timestamp) {
        restore::restore(&mut self.scheduler(), context, now);
    }

    /// The Jobs that got a place while another Job was reconciled. Returns an empty stream after the first call.
    pub fn woken(&self) -> BoxStream<'static, Wake<Job>> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        receiver.map_or_else(|| futures::stream::empty().boxed(), StreamExt::boxed)
    }

    /// The Jobs that may start after the change of a Job: if the Job was deleted and has no pod, its place is free.
    pub fn job_changed(&self, context: &Context, job: &Guarded<Job>) -> Vec<Wake<Job>> {
        let uid = job.meta().uid.clone().unwrap_or_default();
        references(self.forget_deleted(context, &job.namespace().unwrap_or_default(), &job.name_any(), &uid))
    }

    /// The Jobs that may start after Jobs were deleted while the watch was down.
    pub fn jobs_changed(&self, context: &Context) -> Vec<Wake<Job>> {
        let known: Vec<QueuedJob> = self.scheduler().jobs().cloned().collect();
        let forget = |job: &QueuedJob| self.forget_deleted(context, &job.namespace, &job.name, &job.uid);
        references(known.iter().flat_map(forget).collect())
    }

    /// Frees the place of a Job that does not exist any more, unless one of its pods is alive.
    fn forget_deleted(&self, context: &Context, namespace: &str, name: &str, uid: &str) -> Vec<QueuedJob> {
        let cached = context.caches.jobs.get(namespace, name);
        let is_of_job = |pod: &Pod| owned::is_owned_by(&pod.metadata, uid) && !has_ended(pod);
        let exists = cached.is_some_and(|job| job.meta().uid.as_deref() == Some(uid));
        if exists || !context.caches.pods.select(namespace, is_of_job).is_empty() {
            return Vec::new();
        }
        self.scheduler().finish(uid)
    }

    /// The Jobs that may start after the change of a pod: one that probes a quota if the pod has ended, and one for the place of the pod
    /// if its Job was deleted. Other Jobs give their place back when they are reconciled.
    pub fn pod_changed(&self, context: &Context, pod: &Pod) -> Vec<Wake<Job>> {
        let Some(namespace) = &pod.metadata.namespace else { return Vec::new() };
        let is_gone = context.caches.pods.get(namespace, &pod.name_any()).is_none();
        if !is_gone && !has_ended(pod) {
            return Vec::new();
        }
        let mut woken = self.scheduler().pod_ended(namespace);
        if let Some(job) = pod.labels().get(names::LABEL_JOB) {
            let owners = pod.owner_references().iter();
            woken.extend(owners.flat_map(|owner| self.forget_deleted(context, namespace, job, &owner.uid)));
        }
        references(woken)
    }

    /// The Jobs that may start after the change of a Skill. None may until the Skill is checked.
    pub fn skill_changed(&self, context: &Context, skill: &Guarded<Skill>) -> Vec<Wake<Job>> {
        if observe::is_unchecked(skill) {
            return Vec::new();
        }
        let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
        let maximum = maxima::of_skill(context, &namespace, &name);
        references(self.scheduler().set_skill_maximum(&namespace, &name, maximum))
    }

    /// The Jobs that may start after the change of a namespace.
    pub fn namespace_changed(&self, context: &Context, namespace: &PartialObjectMeta<Namespace>) -> Vec<Wake<Job>> {
        let name = namespace.name_any();
        let maximum = maxima::of_namespace(context, &name).value();
        references(self.scheduler().set_namespace_maximum(&name, maximum))
    }

    /// The waiting Jobs of each Skill that has any.
    pub fn lengths(&self) -> Vec<QueueLength> {
        self.scheduler().lengths()
    }

    fn wake(&self, woken: Vec<QueuedJob>) {
        for job in references(woken) {
            // Sending fails only if no controller runs.
            let _ = self.sender.unbounded_send(job);
        }
    }

    fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn references(jobs: Vec<QueuedJob>) -> Vec<Wake<Job>> {
    jobs.into_iter().map(|job| ObjectRef::new(&job.name).within(&job.namespace)).collect()
}
