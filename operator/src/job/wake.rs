//! The changes that wake a Job: those of the Job itself, of its pods, and of the objects that it depends on.
//!
//! The Jobs that depend on a Skill, a Model, a claim or a policy are found by a scan of the cached Jobs. Those objects
//! rarely change, and a scan of 10,000 Jobs takes 1 to 2 ms. Jobs change often, so their follow-ups are found by an
//! index.

use super::queue::Queue;
use crate::caches::{Caches, Change, Guarded, child_key, is_suspended};
use crate::context::Context;
use crate::controller::{Wake, named_by_label, wake_on};
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Approval, Job, JobStatus, Model, Skill};
use futures::stream::{self, BoxStream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim};
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::reflector::{ObjectRef, Store};
use std::sync::Arc;

/// The changes that wake Jobs.
pub(super) fn changes(context: &Arc<Context>, queue: &Queue) -> Vec<BoxStream<'static, Wake<Job>>> {
    let caches = &context.caches;
    let jobs = caches.jobs.store();
    let context_for_follow_ups = context.clone();
    vec![
        wake_on(caches.jobs.changes(), jobs, changed_job(jobs)),
        wake_on(caches.jobs.changes(), jobs, move |job| follow_ups(&context_for_follow_ups.caches, job)),
        wake_on(caches.jobs.changes(), jobs, continued_by),
        wake_on(caches.jobs.changes(), jobs, parent(jobs)),
        wake_on(caches.pods.changes(), jobs, |pod| named_by_label(pod, names::LABEL_JOB)),
        queue.woken(),
        after_deletions(context, queue),
        wake_on(caches.pods.changes(), jobs, may_start(context, queue, Queue::pod_changed)),
        wake_on(caches.skills.changes(), jobs, may_start(context, queue, Queue::skill_changed)),
        wake_on(caches.namespaces.changes(), jobs, may_start(context, queue, Queue::namespace_changed)),
        wake_on(caches.approvals.changes(), jobs, job_of_approval),
        // The admission policies that approvals depend on, and their bindings.
        wake_on(caches.policies.changes(), jobs, dependents(jobs, |_, job| awaits_approval(job))),
        wake_on(caches.bindings.changes(), jobs, dependents(jobs, |_, job| awaits_approval(job))),
        wake_on(caches.namespaces.changes(), jobs, dependents(jobs, is_in_namespace)),
        wake_on(caches.skills.changes(), jobs, dependents(jobs, uses_skill)),
        wake_on(caches.revisions.changes(), jobs, dependents(jobs, uses_revision)),
        wake_on(caches.models.changes(), jobs, dependents(jobs, may_call)),
        wake_on(caches.claims.changes(), jobs, dependents(jobs, binds)),
    ]
}

/// The changed Job, unless it was deleted.
fn changed_job(jobs: &Store<Guarded<Job>>) -> impl Fn(&Guarded<Job>) -> Vec<Wake<Job>> + Send + 'static {
    let jobs = jobs.clone();
    move |job| {
        let job = ObjectRef::from_obj(job);
        if jobs.get(&job).is_some() { vec![job] } else { Vec::new() }
    }
}

/// The unfinished Jobs that continue the changed one, which may wait for its end, and its unfinished children, which end with it.
fn follow_ups(caches: &Caches, job: &Guarded<Job>) -> Vec<Wake<Job>> {
    let Some(namespace) = &job.meta().namespace else { return Vec::new() };
    let name = job.name_any();
    let found = [child_key(&name), name].into_iter().flat_map(|key| caches.jobs.find_by_key(namespace, &key));
    let unfinished = found.filter(|job| job.0.as_ref().is_ok_and(is_unfinished));
    unfinished.map(|job| ObjectRef::from_obj(job.as_ref())).collect()
}

/// The Job that the changed Job continues: once the changed Job has started, the continued one may be deleted.
pub(super) fn continued_by(job: &Guarded<Job>) -> Vec<Wake<Job>> {
    let (Ok(job), Some(namespace)) = (&job.0, &job.meta().namespace) else { return Vec::new() };
    job.spec.continues.iter().map(|continued| ObjectRef::new(continued).within(namespace)).collect()
}

/// The unfinished parent of the changed Job. It records the phase of the child, and may wait for its end.
fn parent(jobs: &Store<Guarded<Job>>) -> impl Fn(&Guarded<Job>) -> Vec<Wake<Job>> + Send + 'static {
    let jobs = jobs.clone();
    move |job| {
        let (Ok(job), Some(namespace)) = (&job.0, &job.meta().namespace) else { return Vec::new() };
        let parent = job.spec.parent.as_ref().map(|parent| ObjectRef::new(&parent.name).within(namespace));
        let is_at_work =
            |parent: &Wake<Job>| jobs.get(parent).is_some_and(|job| job.0.as_ref().is_ok_and(is_unfinished));
        parent.filter(is_at_work).into_iter().collect()
    }
}

/// The Jobs that may start after a change.
fn may_start<C>(
    context: &Arc<Context>,
    queue: &Queue,
    find: impl Fn(&Queue, &Context, &C) -> Vec<Wake<Job>> + Send + 'static,
) -> impl Fn(&C) -> Vec<Wake<Job>> + Send + 'static {
    let (context, queue) = (context.clone(), queue.clone());
    move |changed| find(&queue, &context, changed)
}

/// The Jobs that may start because Jobs were deleted.
fn after_deletions(context: &Arc<Context>, queue: &Queue) -> BoxStream<'static, Wake<Job>> {
    let (changes, context, queue) = (context.caches.jobs.changes(), context.clone(), queue.clone());
    let find = move |change| {
        stream::iter(match change {
            Change::Touched(job) => queue.job_changed(&context, &job),
            Change::Anything => queue.jobs_changed(&context),
        })
    };
    changes.flat_map(find).boxed()
}

/// The Job of an Approval, according to its spec, because labels can be changed.
fn job_of_approval(approval: &Guarded<Approval>) -> Vec<Wake<Job>> {
    let (Ok(approval), Some(namespace)) = (&approval.0, &approval.meta().namespace) else { return Vec::new() };
    vec![ObjectRef::new(&approval.spec.job).within(namespace)]
}

/// The Jobs that depend on a changed object.
pub(super) fn dependents<C>(
    jobs: &Store<Guarded<Job>>,
    depends: impl Fn(&C, &Job) -> bool + Send + 'static,
) -> impl Fn(&C) -> Vec<Wake<Job>> + Send + 'static {
    let jobs = jobs.clone();
    move |changed| {
        let dependents = jobs.state_filter(|job| job.0.as_ref().is_ok_and(|job| depends(changed, job)));
        dependents.iter().map(|job| ObjectRef::from_obj(job.as_ref())).collect()
    }
}

/// Returns whether the suspension of the namespace may matter for a Job. A Job in the queue leaves it only if the namespace is suspended:
/// the queue wakes the Jobs that may start because of another maximum.
pub(super) fn is_in_namespace(namespace: &PartialObjectMeta<Namespace>, job: &Job) -> bool {
    job.metadata.namespace == namespace.metadata.name
        && is_unfinished(job)
        && (!is_in_queue(job) || is_suspended(namespace))
}

/// Returns whether a Job uses a Skill. A Job in the queue that has not started waits for nothing of it, but for a place.
fn uses_skill(skill: &Guarded<Skill>, job: &Job) -> bool {
    is_same_namespace(skill, job)
        && job.spec.skill == skill.name_any()
        && is_unfinished(job)
        && (!is_in_queue(job) || has_started(job))
}

fn uses_revision(revision: &PartialObjectMeta<ConfigMap>, job: &Job) -> bool {
    is_same_namespace(revision, job)
        && revision.labels().get(names::LABEL_SKILL) == Some(&job.spec.skill)
        && is_unfinished(job)
        && !is_in_queue(job)
}

/// Returns whether a Job may call a Model. Only the revision lists the Models, so this is true for every Job of the
/// namespace that waits for a pod.
fn may_call(model: &Guarded<Model>, job: &Job) -> bool {
    is_same_namespace(model, job) && waits_for_a_pod(job) && !is_in_queue(job)
}

fn binds(claim: &PersistentVolumeClaim, job: &Job) -> bool {
    let mut bound = job.spec.resources.values().filter_map(|binding| binding.persistent_volume_claim.as_ref());
    is_same_namespace(claim, job)
        && waits_for_a_pod(job)
        && bound.any(|bound| claim.metadata.name.as_ref() == Some(&bound.claim_name))
}

fn is_same_namespace<C: Resource>(object: &C, job: &Job) -> bool {
    object.meta().namespace == job.metadata.namespace
}

fn phase(job: &Job) -> Option<Phase> {
    job.status.as_ref().and_then(|status| status.phase)
}

fn is_unfinished(job: &Job) -> bool {
    !job.status.as_ref().is_some_and(JobStatus::is_terminal)
}

fn has_started(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.attempt.is_some())
}

/// Returns whether a Job waits in the queue.
fn is_in_queue(job: &Job) -> bool {
    let conditions = job.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let reason = reason_of(conditions, ConditionType::Reconciling);
    waits_for_a_pod(job) && matches!(reason, Some(Reason::Queued | Reason::QuotaExceeded))
}

/// Returns whether a Job waits for approvers. They are asked only while the admission policy is in force.
fn awaits_approval(job: &Job) -> bool {
    phase(job) == Some(Phase::AwaitingApproval)
}

/// Returns whether a Job has no pod, and starts its next attempt as soon as everything that its pod needs exists.
fn waits_for_a_pod(job: &Job) -> bool {
    matches!(phase(job), None | Some(Phase::Pending | Phase::Queued))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Guarded;
    use crate::job::fixtures;
    use crate::job::fixtures::api::FakeApi;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";

    /// Stores a Job of a Skill, in a phase.
    fn put(api: &FakeApi, name: &str, skill: &str, phase: Phase) {
        let mut job = fixtures::job();
        job.metadata.name = Some(name.to_owned());
        job.spec.skill = skill.to_owned();
        job.spec.continues = Some("refund-0".to_owned());
        let bound = json!({ "codebase": { "persistentVolumeClaim": { "claimName": "src" } } });
        job.spec.resources = serde_json::from_value(bound).unwrap();
        job.status = Some(fixtures::status(1, phase));
        api.put(&format!("{JOBS}/{name}"), serde_json::to_value(job).unwrap());
    }

    fn names(wakes: Vec<Wake<Job>>) -> Vec<String> {
        let mut names: Vec<String> = wakes.into_iter().map(|wake| wake.name).collect();
        names.sort();
        names
    }

    fn metadata(namespace: &str, name: &str) -> ObjectMeta {
        let (namespace, name) = (Some(namespace.to_owned()), Some(name.to_owned()));
        let labels = Some([(names::LABEL_SKILL.to_owned(), "cs-tier-1".to_owned())].into());
        ObjectMeta { namespace, name, labels, ..ObjectMeta::default() }
    }

    fn claim(namespace: &str, name: &str) -> PersistentVolumeClaim {
        PersistentVolumeClaim { metadata: metadata(namespace, name), ..PersistentVolumeClaim::default() }
    }

    fn guarded<K>(object: K) -> Guarded<K> {
        Guarded(Ok(object))
    }

    #[tokio::test]
    async fn a_change_wakes_only_the_jobs_that_depend_on_the_object() {
        let api = FakeApi::default();
        put(&api, "at-work", "cs-tier-1", Phase::Running);
        put(&api, "lookup", "other", Phase::Queued);
        put(&api, "over", "cs-tier-1", Phase::Succeeded);
        put(&api, "refund", "cs-tier-1", Phase::Pending);
        let context = api.operator().await;
        let jobs = context.caches.jobs.store();
        let skill = |namespace| {
            let spec = serde_json::from_value(json!({ "problem": { "statement": "x" } })).unwrap();
            let skill = Skill { metadata: metadata(namespace, "cs-tier-1"), spec, status: None };
            names(dependents(jobs, uses_skill)(&guarded(skill)))
        };
        assert_eq!(skill("acme"), ["at-work", "refund"]);
        assert_eq!(skill("globex"), [""; 0]);
        let metadata_of_revision = metadata("acme", "cs-tier-1-4f1c");
        let revision = PartialObjectMeta::<ConfigMap> { metadata: metadata_of_revision, ..Default::default() };
        assert_eq!(names(dependents(jobs, uses_revision)(&revision)), ["at-work", "refund"]);
        assert_eq!(names(dependents(jobs, binds)(&claim("acme", "src"))), ["lookup", "refund"]);
        assert_eq!(names(dependents(jobs, binds)(&claim("acme", "docs"))), [""; 0]);
        assert_eq!(names(dependents(jobs, binds)(&claim("globex", "src"))), [""; 0]);
        let spec = json!({ "provider": "openai", "model": "m", "baseUrl": "https://x/v1" });
        let spec = serde_json::from_value(spec).unwrap();
        let model = Model { metadata: metadata("acme", "default"), spec, status: None };
        assert_eq!(names(dependents(jobs, may_call)(&guarded(model))), ["lookup", "refund"]);
        let mut before = fixtures::job();
        before.metadata.name = Some("refund-0".to_owned());
        assert_eq!(names(follow_ups(&context.caches, &guarded(before))), ["at-work", "lookup", "refund"]);
    }

    #[tokio::test]
    async fn a_child_and_its_parent_wake_each_other_until_they_end() {
        let api = FakeApi::default();
        put(&api, "parent", "cs-tier-1", Phase::AwaitingJob);
        for (name, phase) in [("child-1", Phase::Running), ("child-2", Phase::Succeeded)] {
            put(&api, name, "reviewer", phase);
            api.change(&format!("{JOBS}/{name}"), |job| {
                job["spec"]["continues"] = serde_json::Value::Null;
                job["spec"]["parent"] = json!({ "name": "parent", "uid": fixtures::UID, "call": "c-1" });
            });
        }
        let context = api.operator().await;
        let cached = |name: &str| context.caches.jobs.get("acme", name).unwrap();
        let woken = parent(context.caches.jobs.store());
        assert_eq!(names(follow_ups(&context.caches, cached("parent").as_ref())), ["child-1"]);
        for (name, expected) in [("child-1", &["parent"][..]), ("child-2", &["parent"][..]), ("parent", &[][..])] {
            let changed = cached(name);
            assert_eq!(names(woken(changed.as_ref())), expected, "{name}");
        }
        api.change(&format!("{JOBS}/parent"), |job| job["status"]["phase"] = json!("Failed"));
        let context = api.operator().await;
        let ended = context.caches.jobs.get("acme", "child-1").unwrap();
        assert_eq!(names(parent(context.caches.jobs.store())(ended.as_ref())), [""; 0]);
    }

    /// Stores a Job that was created at this second and waits for this reason.
    fn put_waiting(api: &FakeApi, name: &str, phase: Phase, reason: Reason, created: i64) {
        put(api, name, "cs-tier-1", phase);
        api.change(&format!("{JOBS}/{name}"), |job| {
            job["metadata"]["creationTimestamp"] = json!(fixtures::at(created).to_string());
            job["status"]["conditions"] = json!([{
                "type": "Reconciling", "status": "True", "reason": reason.to_string(), "message": "",
                "lastTransitionTime": fixtures::at(created).to_string(),
            }]);
        });
    }

    #[tokio::test]
    async fn a_job_in_the_queue_is_woken_only_by_what_takes_it_out_of_the_queue() {
        let api = FakeApi::default();
        put_waiting(&api, "full", Phase::Queued, Reason::Queued, 1);
        put_waiting(&api, "quota", Phase::Pending, Reason::QuotaExceeded, 2);
        put_waiting(&api, "waits-for-its-model", Phase::Pending, Reason::ModelNotFound, 3);
        put(&api, "at-work", "cs-tier-1", Phase::Running);
        for name in ["full", "quota"] {
            api.change(&format!("{JOBS}/{name}"), |job| job["status"]["attempt"] = json!(null));
        }
        let context = api.operator().await;
        let jobs = context.caches.jobs.store();
        let spec = serde_json::from_value(json!({ "problem": { "statement": "x" } })).unwrap();
        let skill = Skill { metadata: metadata("acme", "cs-tier-1"), spec, status: None };
        assert_eq!(names(dependents(jobs, uses_skill)(&guarded(skill))), ["at-work", "waits-for-its-model"]);
        let namespace = |suspended: &str| {
            let annotations = Some([(names::ANNOTATION_SUSPEND.to_owned(), suspended.to_owned())].into());
            let metadata = ObjectMeta { name: Some("acme".into()), annotations, ..ObjectMeta::default() };
            let namespace = PartialObjectMeta::<Namespace> { metadata, ..Default::default() };
            names(dependents(jobs, is_in_namespace)(&namespace))
        };
        assert_eq!(namespace("false"), ["at-work", "waits-for-its-model"]);
        assert_eq!(namespace("true"), ["at-work", "full", "quota", "waits-for-its-model"]);
    }

    #[tokio::test]
    async fn a_deleted_job_is_not_woken() {
        let api = FakeApi::default();
        put(&api, "refund", "cs-tier-1", Phase::Running);
        let context = api.operator().await;
        let of_job = changed_job(context.caches.jobs.store());
        let mut job = fixtures::job();
        assert_eq!(names(of_job(&guarded(job.clone()))), ["refund"]);
        job.metadata.name = Some("gone".to_owned());
        assert_eq!(names(of_job(&guarded(job))), [""; 0]);
    }
}
