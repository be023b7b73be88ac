//! Removes fields that the operator never reads from cached objects.

use super::Guarded;
use crate::owned;
use bloomery_crds::names;
use bloomery_crds::outcome::Outcome;
use bloomery_crds::v1alpha1::{Approval, Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, Service, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{PartialObjectMeta, Resource};
use std::collections::BTreeMap;

/// The annotation of `kubectl apply`: a second copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Removes the bookkeeping of the API server and of kubectl.
pub(super) fn metadata<K: Resource>(object: &mut K) {
    remove_bookkeeping(object.meta_mut());
}

/// Removes the status of a Service. Of a Service that the operator does not manage, keeps only the name, type, ports and
/// selector, and whether it is headless. Network policies are built from these.
pub(super) fn service(service: &mut Service) {
    remove_bookkeeping(&mut service.metadata);
    service.status = None;
    if owned::is_managed(&service.metadata) {
        return;
    }
    service.metadata = take_identity(&mut service.metadata);
    service.spec = service.spec.take().map(|spec| ServiceSpec {
        type_: spec.type_,
        ports: spec.ports,
        selector: spec.selector,
        cluster_ip: spec.cluster_ip.filter(|address| address == "None"),
        ..ServiceSpec::default()
    });
}

/// Removes the status of a budget.
pub(super) fn budget(budget: &mut PodDisruptionBudget) {
    remove_bookkeeping(&mut budget.metadata);
    budget.status = None;
}

/// The label of an `EndpointSlice` that names its Service.
pub(super) const LABEL_SERVICE: &str = "kubernetes.io/service-name";

/// Keeps only the name and the Service of an `EndpointSlice`, and an empty endpoint if one is ready.
pub(super) fn endpoint_slice(slice: &mut EndpointSlice) {
    // An unknown readiness counts as ready, as for kube-proxy.
    let is_ready =
        |endpoint: &Endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
    let endpoints = if slice.endpoints.iter().any(is_ready) { vec![Endpoint::default()] } else { Vec::new() };
    let service = slice.metadata.labels.take().and_then(|mut labels| labels.remove_entry(LABEL_SERVICE));
    let resource_version = slice.metadata.resource_version.take();
    let labels = service.map(|service| BTreeMap::from([service]));
    let metadata = ObjectMeta { labels, resource_version, ..take_identity(&mut slice.metadata) };
    *slice = EndpointSlice { metadata, endpoints, ..EndpointSlice::default() };
}

/// Keeps only the name, deletion timestamp and access modes of a claim, unless it is the tenant's memory.
pub(super) fn claim(claim: &mut PersistentVolumeClaim) {
    remove_bookkeeping(&mut claim.metadata);
    if claim.metadata.name.as_deref() == Some(names::MEMORY_CLAIM) {
        return;
    }
    claim.status = None;
    let deletion_timestamp = claim.metadata.deletion_timestamp.take();
    claim.metadata = ObjectMeta { deletion_timestamp, ..take_identity(&mut claim.metadata) };
    claim.spec = claim.spec.take().map(|spec| PersistentVolumeClaimSpec {
        access_modes: spec.access_modes,
        ..PersistentVolumeClaimSpec::default()
    });
}

/// Removes the configuration that the operator writes into a pod and never reads back: environment, volumes,
/// scheduling, and its part of the run document. The arguments stay, because the seal covers them. The environment of init containers
/// stays, because it names the Secrets that the MCP server of a Job needs.
pub(super) fn pod(pod: &mut Pod) {
    remove_bookkeeping(&mut pod.metadata);
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.remove(names::ANNOTATION_JOB_PART);
        annotations.remove(names::ANNOTATION_PROBE_PART);
    }
    let Some(spec) = &mut pod.spec else { return };
    spec.volumes = None;
    spec.affinity = None;
    spec.tolerations = None;
    for container in &mut spec.containers {
        container.env = None;
        container.env_from = None;
        container.volume_mounts = None;
    }
    for container in spec.init_containers.iter_mut().flatten() {
        container.volume_mounts = None;
    }
}

/// Keeps only the name, the resource version, the deletion timestamp, the suspension, the maximum of running Jobs and the other limits of a
/// namespace.
pub(super) fn namespace(namespace: &mut PartialObjectMeta<Namespace>) {
    let metadata = &mut namespace.metadata;
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    annotations.retain(|name, _| {
        let name = name.as_str();
        [names::ANNOTATION_SUSPEND, names::ANNOTATION_MAX_RUNNING_JOBS].contains(&name)
            || names::TENANT_ANNOTATIONS.contains(&name)
    });
    let annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    let resource_version = metadata.resource_version.take();
    let deletion_timestamp = metadata.deletion_timestamp.take();
    *metadata = ObjectMeta { annotations, resource_version, deletion_timestamp, ..take_identity(metadata) };
}

/// Keeps only the name and the resource version of a ConfigMap.
pub(super) fn config_map(config_map: &mut PartialObjectMeta<ConfigMap>) {
    let metadata = &mut config_map.metadata;
    let resource_version = metadata.resource_version.take();
    *metadata = ObjectMeta { resource_version, ..take_identity(metadata) };
}

/// Of a Job that has ended, keeps only what can still matter: its identity and keys, its last attempt, how it ended, the position of its
/// log and its conditions. Statuses are written as merge patches, so fields that are not cached stay as stored.
pub(super) fn job(job: &mut Guarded<Job>) {
    remove_bookkeeping(job.meta_mut());
    let Ok(Job { metadata, spec, status: Some(status) }) = &mut job.0 else { return };
    if status.is_terminal() {
        *metadata = ObjectMeta {
            creation_timestamp: metadata.creation_timestamp.take(),
            deletion_timestamp: metadata.deletion_timestamp.take(),
            generation: metadata.generation,
            resource_version: metadata.resource_version.take(),
            ..take_identity(metadata)
        };
        *spec = ended_spec(spec, status);
        *status = ended_status(status);
    }
}

/// Replies stay until the conditions name those that no worker received.
fn ended_spec(spec: &mut JobSpec, status: &JobStatus) -> JobSpec {
    let are_replies_pending = spec.pending_replies(status).next().is_some();
    JobSpec {
        skill: std::mem::take(&mut spec.skill),
        run_key: spec.run_key.take(),
        continues: spec.continues.take(),
        parent: spec.parent.take(),
        replies: if are_replies_pending { std::mem::take(&mut spec.replies) } else { Vec::new() },
        ttl_seconds_after_finished: spec.ttl_seconds_after_finished,
        ..JobSpec::default()
    }
}

fn ended_status(status: &mut JobStatus) -> JobStatus {
    let outcome = status.outcome.take().map(|outcome| Outcome { message: String::new(), ..outcome });
    JobStatus {
        observed_generation: status.observed_generation,
        phase: status.phase,
        attempt: status.attempt.take(),
        outcome,
        // Its Skill may delete the revision, if it is not the current one.
        skill_revision: status.skill_revision.take(),
        call_not_started: status.call_not_started.take(),
        replies_heard: status.replies_heard,
        log: status.log.take(),
        completion_time: status.completion_time.take(),
        conditions: std::mem::take(&mut status.conditions),
        ..JobStatus::default()
    }
}

/// Keeps the fields that the operator's decisions depend on. The other fields are for people.
pub(super) fn approval(approval: &mut Guarded<Approval>) {
    remove_bookkeeping(approval.meta_mut());
    if let Ok(Approval { spec, .. }) = &mut approval.0 {
        spec.arguments = String::new();
        spec.goal = String::new();
        spec.rules = Vec::new();
        spec.events = Vec::new();
    }
}

fn remove_bookkeeping(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// Moves the fields that identify an object into new metadata.
fn take_identity(metadata: &mut ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.take(),
        namespace: metadata.namespace.take(),
        uid: metadata.uid.take(),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures as job_fixtures;
    use bloomery_crds::outcome::{OutcomeCode, Phase};
    use bloomery_crds::v1alpha1::{JobResult, ParentJob, Reply};
    use serde_json::{Value, json};

    fn trimmed<K: serde::de::DeserializeOwned + serde::Serialize>(trim: fn(&mut K), object: Value) -> Value {
        let mut object = serde_json::from_value(object).unwrap();
        trim(&mut object);
        serde_json::to_value(object).unwrap()
    }

    #[test]
    fn a_foreign_service_keeps_what_network_policies_need_and_an_own_one_its_spec() {
        let object = |manager: &str| {
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {
                    "namespace": "acme", "name": "orders", "uid": "u", "managedFields": [{"manager": "kubectl"}],
                    "labels": {"app.kubernetes.io/managed-by": manager},
                },
                "spec": {
                    "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80}], "selector": {"app": "orders"},
                    "sessionAffinity": "None",
                },
                "status": {"loadBalancer": {}},
            })
        };
        let foreign = trimmed(service, object("helm"));
        let kept = json!({"type": "ClusterIP", "ports": [{"port": 80}], "selector": {"app": "orders"}});
        assert_eq!(foreign["spec"], kept);
        assert_eq!(foreign["metadata"], json!({"namespace": "acme", "name": "orders", "uid": "u"}));
        let own = trimmed(service, object("bloomery"));
        assert_eq!(own["spec"]["clusterIP"], "10.0.0.1");
        assert_eq!(own["metadata"]["labels"]["app.kubernetes.io/managed-by"], "bloomery");
        assert!(own["metadata"]["managedFields"].is_null());
    }

    #[test]
    fn only_the_memory_claim_is_kept_in_full() {
        let object = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"namespace": "acme", "name": name, "uid": "u", "annotations": {"a": "b"}, "labels": {"c": "d"}},
                "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv-1"},
                "status": {"phase": "Bound"},
            })
        };
        let bound = trimmed(claim, object("src"));
        assert_eq!(bound["metadata"], json!({"namespace": "acme", "name": "src", "uid": "u"}));
        assert_eq!((&bound["spec"], &bound["status"]), (&json!({"accessModes": ["ReadWriteOnce"]}), &Value::Null));
        assert_eq!(trimmed(claim, object(names::MEMORY_CLAIM)), object(names::MEMORY_CLAIM));
    }

    #[test]
    fn a_namespace_keeps_its_name_its_suspension_and_its_limits() {
        let object = |annotations: Value| {
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": "acme", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": annotations,
                },
            })
        };
        let kept = |annotations| trimmed(namespace, object(annotations))["metadata"].clone();
        let suspended = json!({names::ANNOTATION_SUSPEND: "true"});
        for limit in [names::ANNOTATION_MAX_RUNNING_JOBS].iter().chain(&names::TENANT_ANNOTATIONS) {
            let limited = json!({*limit: "7"});
            assert_eq!(kept(limited.clone())["annotations"], limited);
        }
        let both = json!({names::ANNOTATION_SUSPEND: "true", "c": "d"});
        assert_eq!(kept(both), json!({"name": "acme", "uid": "u", "resourceVersion": "7", "annotations": suspended}));
        assert_eq!(kept(json!({"c": "d"})), json!({"name": "acme", "uid": "u", "resourceVersion": "7"}));
    }

    #[test]
    fn a_config_map_keeps_its_name_and_version() {
        let object = json!({
            "metadata": {
                "name": "lists", "namespace": "acme", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
                "annotations": {LAST_APPLIED: "{}"},
            },
        });
        let kept = json!({"name": "lists", "namespace": "acme", "uid": "u", "resourceVersion": "7"});
        assert_eq!(trimmed(config_map, object)["metadata"], kept);
    }

    #[test]
    fn an_approval_keeps_its_decision_and_not_the_description_of_the_call() {
        let kept = crate::job::fixtures::decided(
            crate::job::fixtures::approval("supervisor"),
            bloomery_crds::v1alpha1::ApprovalVerdict::Deny,
        );
        let mut guarded: Guarded<Approval> = serde_json::from_value(serde_json::to_value(&kept).unwrap()).unwrap();
        approval(&mut guarded);
        let spec = guarded.0.unwrap().spec;
        assert_eq!((&spec.approver, &spec.decision), (&kept.spec.approver, &kept.spec.decision));
        assert_eq!(spec.arguments_digest, kept.spec.arguments_digest);
        assert_eq!((spec.arguments + &spec.goal, spec.events.len() + spec.rules.len()), (String::new(), 0));
    }

    /// A Job with a status in this phase, whose agent has received one of two replies.
    fn replied(phase: Phase) -> Guarded<Job> {
        let mut stored = job_fixtures::job();
        stored.metadata.labels = Some([("team".to_owned(), "orders".to_owned())].into());
        let reply = |text: &str| Reply { question: None, text: text.to_owned() };
        stored.spec.replies = vec![reply("be quick"), reply("stop")];
        let result = Some(JobResult { text: "It is done".to_owned(), ..JobResult::default() });
        let outcome = Some(Outcome::new(OutcomeCode::Succeeded, "the answer passed every gate"));
        let usage = Some(Box::default());
        let of_phase = job_fixtures::status(2, phase);
        stored.status = Some(JobStatus { result, outcome, usage, replies_heard: Some(1), ..of_phase });
        Guarded(Ok(stored))
    }

    #[test]
    fn an_ended_child_keeps_its_parent_and_not_its_result() {
        let mut child = replied(Phase::Succeeded);
        let parent = ParentJob { name: "audit".to_owned(), ..ParentJob::default() };
        child.0.as_mut().unwrap().spec.parent = Some(parent.clone());
        job(&mut child);
        let child = child.0.unwrap();
        assert_eq!((child.spec.parent, child.status.unwrap().result), (Some(parent), None));
    }

    #[test]
    fn an_ended_job_keeps_only_what_can_still_matter() {
        let (mut trimmed, whole) = (replied(Phase::Succeeded), replied(Phase::Succeeded).0.unwrap());
        job(&mut trimmed);
        let trimmed = trimmed.0.unwrap();
        assert_eq!(trimmed.metadata.uid, whole.metadata.uid);
        assert_eq!((trimmed.metadata.labels, trimmed.metadata.generation), (None, whole.metadata.generation));
        assert_eq!((trimmed.spec.goal.as_str(), &trimmed.spec.skill), ("", &whole.spec.skill));
        assert_eq!(trimmed.spec.replies, whole.spec.replies, "one of them is not received yet");
        let (kept, stored) = (trimmed.status.unwrap(), whole.status.unwrap());
        assert_eq!((&kept.attempt, &kept.log, &kept.conditions), (&stored.attempt, &stored.log, &stored.conditions));
        assert_eq!(kept.outcome.map(|outcome| outcome.code), Some(OutcomeCode::Succeeded));
        assert_eq!((kept.result, kept.usage), (None, None));

        let mut heard = replied(Phase::Succeeded);
        heard.0.as_mut().unwrap().status.as_mut().unwrap().replies_heard = Some(2);
        job(&mut heard);
        assert_eq!(heard.0.unwrap().spec.replies, []);
    }

    #[test]
    fn a_job_that_has_not_ended_is_kept_in_full() {
        let (mut trimmed, whole) = (replied(Phase::Running), replied(Phase::Running).0.unwrap());
        job(&mut trimmed);
        assert_eq!(trimmed.0.unwrap(), whole);
    }

    #[test]
    fn a_pod_keeps_its_status_and_not_its_configuration() {
        let annotation = names::ANNOTATION_JOB_PART;
        let seen = trimmed(
            pod,
            json!({
                "metadata": {"annotations": {annotation: "long", "kept": "x"}},
                "spec": {"nodeName": "n", "containers": [{"name": "worker", "env": [{"name": "A"}]}], "volumes": [{"name": "v"}]},
                "status": {"phase": "Running"},
            }),
        );
        assert_eq!(seen["metadata"]["annotations"], json!({"kept": "x"}));
        assert_eq!(seen["spec"], json!({"nodeName": "n", "containers": [{"name": "worker"}]}));
        assert_eq!(seen["status"]["phase"], "Running");
    }
}
