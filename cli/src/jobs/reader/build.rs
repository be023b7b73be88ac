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

/// The label value of this program. The operator ignores pods with it.
const FIELD_MANAGER: &str = "kubectl-bloomery";

/// The deadline of the pod, in seconds.
pub(super) const DEADLINE: u32 = 120;

/// The mount path of the skill directory.
const SKILL_DIRECTORY: &str = "/slag";

/// The default user of workers.
const USER: i64 = 65532;

/// The properties that a reader pod takes over from a worker pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    image: String,
    pull_policy: Option<String>,
    pull_secrets: Option<Vec<LocalObjectReference>>,
    resources: Option<ResourceRequirements>,
    tolerations: Option<Vec<Toleration>>,
    node_selector: Option<BTreeMap<String, String>>,
    user: Option<i64>,
    group: Option<i64>,
    fs_group: Option<i64>,
    /// Whether only one node at a time can mount the memory, as the operator has found.
    one_node: bool,
}

impl Template {
    /// Reads the template from a worker pod.
    pub(super) fn from_worker(worker: &Pod) -> Option<Self> {
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
            one_node: wants_its_node(spec),
        })
    }

    /// Replaces the image.
    pub(super) fn with_image(self, image: String) -> Self {
        Self { image, ..self }
    }

    /// The template with the defaults of the chart.
    pub(super) fn default_with_image(image: String) -> Self {
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
            user: Some(USER),
            group: Some(USER),
            fs_group: Some(USER),
            one_node: true,
        }
    }
}

/// Returns whether a worker requires the node of the other pods of the memory.
fn wants_its_node(worker: &PodSpec) -> bool {
    let company = worker.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = company.and_then(|company| company.required_during_scheduling_ignored_during_execution.as_ref());
    terms.into_iter().flatten().any(|term| {
        let labels = term.label_selector.as_ref().and_then(|selector| selector.match_labels.as_ref());
        labels.is_some_and(|labels| labels.get(LABEL_MEMORY).is_some_and(|memory| memory == MEMORY_CLAIM))
    })
}

/// Builds the pod that reads the log of a Job. It passes the `restricted` Pod Security Standard, has no credentials, and sees
/// only the directory of the Job's Skill, read-only.
///
/// # Errors
/// If the Job has no log yet, or its status names one outside of the skill directory.
pub(super) fn pod(job: &Job, template: &Template, json: bool) -> Result<Pod, Error> {
    let name = job.name_any();
    let log = job.status.as_ref().and_then(|status| status.log.as_ref());
    let Some(log) = log else { return Err(Error::usage(format!("the Job {name} has no events yet"))) };
    if !is_within(&log.path) {
        return Err(Error::failed(format!(
            "the status of the Job {name} names a log outside of its skill directory: {:?}",
            log.path
        )));
    }
    let format = if json { "json" } else { "text" };
    let args = vec!["events".to_owned(), format!("--log-format={format}"), format!("{SKILL_DIRECTORY}/{}", log.path)];
    Ok(Pod { metadata: metadata(job), spec: Some(spec(job, template, args)), status: None })
}

/// Returns whether a path stays below its start.
fn is_within(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn metadata(job: &Job) -> ObjectMeta {
    let labels = [
        (LABEL_MANAGED_BY, FIELD_MANAGER),
        (LABEL_COMPONENT, "reader"),
        (LABEL_SKILL, &job.spec.skill),
        (LABEL_MEMORY, MEMORY_CLAIM),
    ];
    // The pod is deleted with its Job at the latest. It has no controller.
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
        active_deadline_seconds: Some(i64::from(DEADLINE)),
        termination_grace_period_seconds: Some(0),
        image_pull_secrets: template.pull_secrets.clone(),
        tolerations: template.tolerations.clone(),
        node_selector: template.node_selector.clone(),
        security_context: Some(pod::restricted_for_memory(template.user, template.group, template.fs_group)),
        affinity: template.one_node.then(|| pod::same_node_as((LABEL_MEMORY.to_owned(), MEMORY_CLAIM.to_owned()))),
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
            mount_path: SKILL_DIRECTORY.to_owned(),
            sub_path: Some(job.spec.skill.clone()),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

fn state(pod: &Pod) -> Option<&ContainerState> {
    pod::worker_status(pod)?.state.as_ref()
}

/// Returns why a pod cannot start without an intervention.
pub(super) fn stuck(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Some(because(status.reason.as_deref(), status.message.as_deref()));
    }
    if let Some(waiting) = state(pod).and_then(|state| state.waiting.as_ref()) {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let starts = matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        return (!starts).then(|| because(Some(reason), waiting.message.as_deref()));
    }
    None
}

/// Returns why a pod is not scheduled yet. This may be temporary.
pub(super) fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let mut waits = conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let PodCondition { reason, message, .. } = waits.next()?;
    Some(because(reason.as_deref(), message.as_deref()))
}

fn because(reason: Option<&str>, message: Option<&str>) -> String {
    [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns why a pod has failed.
pub(super) fn failure(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() == Some("Succeeded") {
        return None;
    }
    let ended = state(pod).and_then(|state| state.terminated.as_ref());
    let code = ended.map(|ended| format!("exit code {}", ended.exit_code));
    let hint = ended.filter(|ended| ended.exit_code == 2).map(|_| {
        "the image may be older than this command and lack `events`: name another one with --image".to_owned()
    });
    let reason = status.reason.clone();
    Some([reason, code, hint].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{changed, holds, job};
    use rstest::rstest;
    use serde_json::json;

    fn yaml(pod: &Pod) -> String {
        serde_yaml::to_string(&serde_json::to_value(pod).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_pod() {
        insta::assert_snapshot!(yaml(&pod(&holds(), &Template::default_with_image("worker:1".into()), false).unwrap()));
    }

    #[test]
    fn it_is_made_like_a_worker() {
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
        let pod = pod(&holds(), &Template::from_worker(&worker).unwrap(), true).unwrap();
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
    #[case::other_company(json!({"app.kubernetes.io/name": "x"}), false)]
    #[case::any_company(json!(null), false)]
    #[case::a_claim_that_the_job_binds(json!({"claim.bloomery.dev/0123": "bound"}), false)]
    #[case::the_memory(json!({LABEL_MEMORY: MEMORY_CLAIM}), true)]
    fn it_demands_the_node_of_the_memory_where_workers_do(#[case] company: serde_json::Value, #[case] demands: bool) {
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": company}});
        let worker: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "containers": [{"name": "worker", "image": "worker:2"}],
        }}))
        .unwrap();
        for template in [
            Template::from_worker(&worker).unwrap(),
            Template::from_worker(&worker).unwrap().with_image("worker:3".into()),
        ] {
            let pod = pod(&holds(), &template, false).unwrap();
            assert_eq!(pod.spec.unwrap().affinity.is_some(), demands);
        }
    }

    #[rstest]
    #[case::up("../other/jobs/x")]
    #[case::from_the_root("/etc")]
    #[case::up_on_the_way("jobs/../../other")]
    #[case::nothing("")]
    fn a_log_outside_of_the_slag_is_not_read(#[case] path: &str) {
        let job = changed(holds(), |status| {
            if let Some(log) = &mut status.log {
                log.path = path.to_owned();
            }
        });
        assert!(pod(&job, &Template::default_with_image("worker:1".into()), false).is_err());
    }

    #[test]
    fn a_job_without_events_is_told() {
        let error = pod(&job("new"), &Template::default_with_image("worker:1".into()), false).unwrap_err();
        assert!(error.message.contains("no events yet"), "{error}");
    }

    fn with(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap()
    }

    fn container(state: &serde_json::Value) -> serde_json::Value {
        json!([{"name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}])
    }

    #[test]
    fn a_pod_that_cannot_begin_says_why() {
        let waits =
            |reason: &str| with(&json!({"containerStatuses": container(&json!({"waiting": {"reason": reason}}))}));
        assert_eq!(stuck(&waits("ContainerCreating")), None);
        assert_eq!(stuck(&waits("ImagePullBackOff")).unwrap(), "ImagePullBackOff");
        let unschedulable = json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node is free"},
        ]});
        assert_eq!(stuck(&with(&unschedulable)), None, "a node may come");
        assert_eq!(unscheduled(&with(&unschedulable)).unwrap(), "Unschedulable: no node is free");
        let scheduled = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        assert_eq!(unscheduled(&with(&scheduled)), None);
        let late = json!({"phase": "Failed", "reason": "DeadlineExceeded"});
        assert_eq!(stuck(&with(&late)).unwrap(), "DeadlineExceeded");
        assert_eq!(stuck(&Pod::default()), None);
    }

    #[test]
    fn a_pod_that_failed_says_why() {
        assert_eq!(failure(&with(&json!({"phase": "Succeeded"}))), None);
        let ended = |code: u8| {
            let state = container(&json!({"terminated": {"exitCode": code}}));
            failure(&with(&json!({"phase": "Failed", "containerStatuses": state}))).unwrap()
        };
        assert_eq!(ended(1), "exit code 1");
        assert!(ended(2).contains("may be older than this command"));
    }
}
