//! Builds the reader pod, and interprets its status.

use crate::error::Error;
use bloomery_crds::names::{LABEL_COMPONENT, LABEL_MANAGED_BY, LABEL_MEMORY, LABEL_SKILL, MEMORY_CLAIM};
use bloomery_crds::pod::{self, WORKER_CONTAINER};
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, LocalObjectReference, PersistentVolumeClaimVolumeSource, Pod, PodCondition, PodSpec,
    ResourceRequirements, SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// The maximum lifetime of the pod, in seconds.
pub const DEADLINE_SECONDS: u32 = 120;

/// The mount path of the skill directory, which the requirement documents call slag.
const MOUNT_PATH: &str = "/slag";

/// The default user and group of workers.
const WORKER_UID: i64 = 65532;

/// The properties that a reader pod copies from a worker pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    image: String,
    pull_policy: Option<String>,
    pull_secrets: Option<Vec<LocalObjectReference>>,
    resources: Option<ResourceRequirements>,
    tolerations: Option<Vec<Toleration>>,
    node_selector: Option<BTreeMap<String, String>>,
    user: Option<i64>,
    group: Option<i64>,
    fs_group: Option<i64>,
    /// True if only one node at a time can mount the memory. The reader pod then has to run on that node.
    memory_on_one_node: bool,
}

impl Template {
    /// Creates the template from a worker pod. Returns `None` if the pod has no worker container.
    pub fn from_worker(worker: &Pod) -> Option<Self> {
        let spec = worker.spec.as_ref()?;
        let container = spec.containers.iter().find(|container| container.name == WORKER_CONTAINER)?;
        let user = spec.security_context.as_ref();
        Some(Self {
            image: container.image.clone()?,
            pull_policy: container.image_pull_policy.clone(),
            pull_secrets: spec.image_pull_secrets.clone(),
            resources: container.resources.clone(),
            tolerations: spec.tolerations.clone(),
            node_selector: spec.node_selector.clone(),
            user: user.and_then(|user| user.run_as_user),
            group: user.and_then(|user| user.run_as_group),
            fs_group: user.and_then(|user| user.fs_group),
            memory_on_one_node: requires_node_of_memory(spec),
        })
    }

    /// Replaces the image.
    pub fn with_image(self, image: String) -> Self {
        Self { image, ..self }
    }

    /// Creates a template from the defaults of the chart.
    pub fn default_with_image(image: String) -> Self {
        let quantity = |text: &str| Quantity(text.to_owned());
        let resources = ResourceRequirements {
            requests: Some([("cpu".to_owned(), quantity("20m")), ("memory".to_owned(), quantity("32Mi"))].into()),
            limits: Some([("memory".to_owned(), quantity("256Mi"))].into()),
            ..ResourceRequirements::default()
        };
        Self {
            image,
            pull_policy: None,
            pull_secrets: None,
            resources: Some(resources),
            tolerations: None,
            node_selector: None,
            user: Some(WORKER_UID),
            group: Some(WORKER_UID),
            fs_group: Some(WORKER_UID),
            memory_on_one_node: true,
        }
    }
}

/// Returns whether a worker pod has to run on the same node as the other pods that mount the memory.
fn requires_node_of_memory(worker: &PodSpec) -> bool {
    let affinity = worker.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    terms.into_iter().flatten().any(|term| {
        let labels = term.label_selector.as_ref().and_then(|selector| selector.match_labels.as_ref());
        labels.is_some_and(|labels| labels.get(LABEL_MEMORY).is_some_and(|memory| memory == MEMORY_CLAIM))
    })
}

/// Builds the pod that reads the log of a Job. The pod meets the `restricted` Pod Security Standard and has no
/// credentials. It mounts only the directory of the Job's Skill, read-only.
///
/// # Errors
/// If the Job has no log yet, or its status names a log outside of the skill directory.
pub fn pod(job: &Job, template: &Template, json: bool, manager: &str) -> Result<Pod, Error> {
    let name = job.name_any();
    let log = job.status.as_ref().and_then(|status| status.log.as_ref());
    let Some(log) = log else { return Err(Error::invalid(format!("the Job {name} has no events yet"))) };
    if !is_within(&log.path) {
        return Err(Error::failed(format!(
            "the status of the Job {name} names a log outside of its skill directory: {:?}",
            log.path
        )));
    }
    let format = if json { "json" } else { "text" };
    let args = vec!["events".to_owned(), format!("--log-format={format}"), format!("{MOUNT_PATH}/{}", log.path)];
    Ok(Pod { metadata: metadata(job, manager), spec: Some(spec(job, template, args)), status: None })
}

/// Returns whether a relative path stays below the directory that it starts from.
fn is_within(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn metadata(job: &Job, manager: &str) -> ObjectMeta {
    let labels = [
        // The operator ignores pods with this value.
        (LABEL_MANAGED_BY, manager),
        (LABEL_COMPONENT, "reader"),
        (LABEL_SKILL, &job.spec.skill),
        (LABEL_MEMORY, MEMORY_CLAIM),
    ];
    // If this program does not delete the pod, the garbage collector deletes it with its Job.
    let owner = job.uid().map(|uid| OwnerReference {
        api_version: Job::api_version(&()).into_owned(),
        kind: Job::kind(&()).into_owned(),
        name: job.name_any(),
        uid,
        ..OwnerReference::default()
    });
    ObjectMeta {
        generate_name: Some(format!("{}-events-", job.name_any())),
        labels: Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        owner_references: owner.map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

fn spec(job: &Job, template: &Template, args: Vec<String>) -> PodSpec {
    let memory = PersistentVolumeClaimVolumeSource { claim_name: MEMORY_CLAIM.to_owned(), read_only: Some(true) };
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: Some(i64::from(DEADLINE_SECONDS)),
        termination_grace_period_seconds: Some(0),
        image_pull_secrets: template.pull_secrets.clone(),
        tolerations: template.tolerations.clone(),
        node_selector: template.node_selector.clone(),
        security_context: Some(pod::restricted_for_memory(template.user, template.group, template.fs_group)),
        affinity: template
            .memory_on_one_node
            .then(|| pod::same_node_as((LABEL_MEMORY.to_owned(), MEMORY_CLAIM.to_owned()))),
        containers: vec![container(job, template, args)],
        volumes: Some(vec![Volume {
            name: "memory".to_owned(),
            persistent_volume_claim: Some(memory),
            ..Volume::default()
        }]),
        ..PodSpec::default()
    }
}

fn container(job: &Job, template: &Template, args: Vec<String>) -> Container {
    Container {
        name: WORKER_CONTAINER.to_owned(),
        image: Some(template.image.clone()),
        image_pull_policy: template.pull_policy.clone(),
        args: Some(args),
        resources: template.resources.clone(),
        security_context: Some(SecurityContext { run_as_non_root: Some(true), ..pod::restricted_container() }),
        volume_mounts: Some(vec![VolumeMount {
            name: "memory".to_owned(),
            mount_path: MOUNT_PATH.to_owned(),
            sub_path: Some(job.spec.skill.clone()),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// Returns the state of the pod's container.
fn container_state(pod: &Pod) -> Option<&ContainerState> {
    pod::worker_status(pod)?.state.as_ref()
}

/// Returns why a pod cannot start. Returns `None` while it may still start by itself.
pub fn stuck_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if pod::has_ended(pod) {
        return Some(reason_and_message(status.reason.as_deref(), status.message.as_deref()));
    }
    if let Some(waiting) = container_state(pod).and_then(|state| state.waiting.as_ref()) {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let is_starting = matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        return (!is_starting).then(|| reason_and_message(Some(reason), waiting.message.as_deref()));
    }
    None
}

/// Returns why a pod is not scheduled yet. This may be temporary.
pub fn unscheduled_reason(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let mut unscheduled =
        conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let PodCondition { reason, message, .. } = unscheduled.next()?;
    Some(reason_and_message(reason.as_deref(), message.as_deref()))
}

/// Joins the reason and the message of a state.
fn reason_and_message(reason: Option<&str>, message: Option<&str>) -> String {
    [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns why an ended pod has failed. Returns `None` if it has succeeded.
pub fn failure_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let ended = container_state(pod).and_then(|state| state.terminated.as_ref());
    if status.phase.as_deref() == Some("Succeeded") || ended.is_some_and(|ended| ended.exit_code == 0) {
        return None;
    }
    let code = ended.map(|ended| format!("exit code {}", ended.exit_code));
    // The worker exits with 2 for arguments that it does not know.
    let hint = ended.filter(|ended| ended.exit_code == 2).map(|_| {
        "the image may be too old to have the command `events`: select another one with `options.image`".to_owned()
    });
    let reason = status.reason.clone();
    Some([reason, code, hint].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_testkit::objects::jobs::{changed, job, with_held_call};
    use rstest::rstest;
    use serde_json::json;

    const MANAGER: &str = "kubectl-bloomery";

    fn yaml(pod: &Pod) -> String {
        serde_yaml::to_string(&serde_json::to_value(pod).unwrap()).unwrap()
    }

    #[test]
    fn the_default_pod_is_the_golden_one() {
        insta::assert_snapshot!(yaml(
            &pod(&with_held_call(), &Template::default_with_image("worker:1".into()), false, MANAGER).unwrap()
        ));
    }

    #[test]
    fn the_pod_has_the_properties_of_a_worker() {
        let worker: Pod = serde_json::from_value(json!({
            "metadata": {},
            "spec": {
                "securityContext": {"runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 1002},
                "tolerations": [{"key": "agents"}], "nodeSelector": {"disk": "here"},
                "containers": [{"name": "sidecar", "image": "other"}, {
                    "name": "worker", "image": "worker:2", "imagePullPolicy": "Never",
                    "resources": {"limits": {"memory": "64Mi"}},
                }],
            },
        }))
        .unwrap();
        let pod = pod(&with_held_call(), &Template::from_worker(&worker).unwrap(), true, MANAGER).unwrap();
        let spec = pod.spec.unwrap();
        let user = spec.security_context.unwrap();
        assert_eq!((user.run_as_user, user.run_as_group, user.fs_group), (Some(1000), Some(1001), Some(1002)));
        let reader = &spec.containers[0];
        assert_eq!((reader.image.as_deref(), reader.image_pull_policy.as_deref()), (Some("worker:2"), Some("Never")));
        assert_eq!(reader.args.as_ref().unwrap()[1], "--log-format=json");
        assert!(spec.tolerations.is_some() && spec.node_selector.is_some() && reader.resources.is_some());
        assert_eq!(Template::from_worker(&Pod::default()), None);
    }

    #[rstest]
    #[case::other_pods(json!({"app.kubernetes.io/name": "x"}), false)]
    #[case::any_pods(json!(null), false)]
    #[case::a_claim_that_the_job_binds(json!({"claim.bloomery.dev/0123": "bound"}), false)]
    #[case::the_memory(json!({LABEL_MEMORY: MEMORY_CLAIM}), true)]
    fn the_pod_requires_the_node_of_the_memory_if_workers_do(
        #[case] labels: serde_json::Value,
        #[case] requires: bool,
    ) {
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}});
        let worker: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "containers": [{"name": "worker", "image": "worker:2"}],
        }}))
        .unwrap();
        for template in [
            Template::from_worker(&worker).unwrap(),
            Template::from_worker(&worker).unwrap().with_image("worker:3".into()),
        ] {
            let pod = pod(&with_held_call(), &template, false, MANAGER).unwrap();
            assert_eq!(pod.spec.unwrap().affinity.is_some(), requires);
        }
    }

    #[rstest]
    #[case::up("../other/jobs/x")]
    #[case::from_the_root("/etc")]
    #[case::up_on_the_way("jobs/../../other")]
    #[case::nothing("")]
    fn a_log_outside_of_the_skill_directory_is_not_read(#[case] path: &str) {
        let job = changed(with_held_call(), |status| {
            if let Some(log) = &mut status.log {
                log.path = path.to_owned();
            }
        });
        assert!(pod(&job, &Template::default_with_image("worker:1".into()), false, MANAGER).is_err());
    }

    #[test]
    fn a_job_without_events_has_no_reader_pod() {
        let error = pod(&job("new"), &Template::default_with_image("worker:1".into()), false, MANAGER).unwrap_err();
        assert!(error.message.contains("no events yet"), "{error}");
    }

    fn with(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap()
    }

    fn container(state: &serde_json::Value) -> serde_json::Value {
        json!([{"name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}])
    }

    #[test]
    fn a_pod_that_cannot_start_has_a_reason() {
        let waits =
            |reason: &str| with(&json!({"containerStatuses": container(&json!({"waiting": {"reason": reason}}))}));
        assert_eq!(stuck_reason(&waits("ContainerCreating")), None);
        assert_eq!(stuck_reason(&waits("ImagePullBackOff")).unwrap(), "ImagePullBackOff");
        let unschedulable = json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node is free"},
        ]});
        assert_eq!(stuck_reason(&with(&unschedulable)), None, "a node may come");
        assert_eq!(unscheduled_reason(&with(&unschedulable)).unwrap(), "Unschedulable: no node is free");
        let scheduled = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        assert_eq!(unscheduled_reason(&with(&scheduled)), None);
        let late = json!({"phase": "Failed", "reason": "DeadlineExceeded"});
        assert_eq!(stuck_reason(&with(&late)).unwrap(), "DeadlineExceeded");
        assert_eq!(stuck_reason(&Pod::default()), None);
    }

    #[test]
    fn a_failed_pod_has_a_reason() {
        assert_eq!(failure_reason(&with(&json!({"phase": "Succeeded"}))), None);
        let ended = |code: u8| {
            let state = container(&json!({"terminated": {"exitCode": code}}));
            failure_reason(&with(&json!({"phase": "Failed", "containerStatuses": state}))).unwrap()
        };
        assert_eq!(ended(1), "exit code 1");
        assert!(ended(2).contains("may be too old") && ended(2).contains("`options.image`"));
    }
}
