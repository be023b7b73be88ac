//! Builds the pod of one attempt.

use super::{affinity, tenant_volumes, volumes};
use crate::job::paths;
use crate::job::validate::ValidAttempt;
use crate::network::destination;
use crate::owned;
use crate::settings::{LogFormat, PodDefaults, WorkerSettings};
use crate::worker_pod;
use bloomery_crds::names;
use bloomery_crds::pod::WORKER_CONTAINER;
use bloomery_crds::run::Sealed;
use bloomery_crds::v1alpha1::RevisionRef;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

/// The maximum deadline of a pod that the API server accepts, in seconds.
const MAX_DEADLINE_SECONDS: i64 = i32::MAX as i64;

/// The seconds that a call in progress may take after the worker was asked to stop.
const TERMINATION_GRACE_SECONDS: i64 = 60;

/// The annotation that allows the cluster autoscaler to evict a worker. On SIGTERM the worker parks, and its Job
/// continues on another node.
const SAFE_TO_EVICT_ANNOTATION: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// The flag that passes the digest of the revision. [`revision_of`] reads it back.
const REVISION_DIGEST_FLAG: &str = "--revision-digest=";

/// Builds the pod of an attempt around the sealed Job's part.
///
/// The pod has no Kubernetes credentials, passes the `restricted` Pod Security Standard, and has no secret in its
/// environment or arguments.
pub(super) fn build_pod(attempt: &ValidAttempt, settings: &WorkerSettings, part: &Sealed) -> Pod {
    let mut metadata = metadata(attempt, part);
    let pod = settings.pod.with_skill(attempt.pod.as_ref());
    pod.label(&mut metadata);
    Pod { metadata, spec: Some(spec(attempt, settings, &pod, part)), status: None }
}

fn metadata(attempt: &ValidAttempt, part: &Sealed) -> ObjectMeta {
    let mut labels = owned::labels("worker");
    labels.extend([
        (names::LABEL_SKILL.to_owned(), attempt.skill.clone()),
        (names::LABEL_JOB.to_owned(), attempt.job.name.clone()),
        (names::LABEL_ATTEMPT.to_owned(), attempt.number.to_string()),
        (names::LABEL_MEMORY.to_owned(), names::MEMORY_CLAIM.to_owned()),
    ]);
    labels.extend(attempt.run_key.iter().map(|key| (names::LABEL_RUN_KEY.to_owned(), key.clone())));
    labels.extend(affinity::labels(attempt));
    let mut annotations = BTreeMap::from([
        (names::ANNOTATION_JOB_PART.to_owned(), part.text.clone()),
        (SAFE_TO_EVICT_ANNOTATION.to_owned(), "true".to_owned()),
    ]);
    if !attempt.connects_to.is_empty() {
        let connects_to = destination::to_annotation(&attempt.connects_to);
        annotations.insert(names::ANNOTATION_CONNECTS_TO.to_owned(), connects_to);
    }
    ObjectMeta {
        name: Some(names::worker_pod(&attempt.job.name, attempt.number, &attempt.job.uid)),
        namespace: Some(attempt.job.namespace.clone()),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![attempt.owner.clone()]),
        ..ObjectMeta::default()
    }
}

fn spec(attempt: &ValidAttempt, settings: &WorkerSettings, pod: &PodDefaults, part: &Sealed) -> PodSpec {
    let deadline = i64::try_from(attempt.deadline_seconds()).unwrap_or(i64::MAX);
    let mut spec = PodSpec {
        service_account_name: Some(names::worker_service_account(&attempt.skill)),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        affinity: affinity::affinity(attempt),
        ..worker_pod::spec(
            settings,
            pod,
            container(attempt, settings, part),
            volumes::volumes(attempt),
            deadline.min(MAX_DEADLINE_SECONDS),
        )
    };
    for sidecar in &attempt.sidecars {
        sidecar.add_to(&mut spec, settings, tenant_volumes::filesystem_mounts(attempt));
    }
    spec
}

fn container(attempt: &ValidAttempt, settings: &WorkerSettings, part: &Sealed) -> Container {
    let uid = ObjectFieldSelector { field_path: "metadata.uid".to_owned(), ..ObjectFieldSelector::default() };
    let uid = EnvVarSource { field_ref: Some(uid), ..EnvVarSource::default() };
    Container {
        env: Some(vec![EnvVar { name: "POD_UID".to_owned(), value_from: Some(uid), ..EnvVar::default() }]),
        ..worker_pod::container(settings, args(attempt, settings, part), volumes::mounts(attempt))
    }
}

fn args(attempt: &ValidAttempt, settings: &WorkerSettings, part: &Sealed) -> Vec<String> {
    let mut args = vec![
        "run".to_owned(),
        format!("--revision={}", paths::revision()),
        format!("{REVISION_DIGEST_FLAG}{}", attempt.revision.digest),
        format!("--job={}/{}", paths::JOB_DIR, paths::JOB_FILE),
        format!("--job-digest={}", part.digest),
        format!("--memory={}", paths::memory(&attempt.skill)),
        format!("--token={}/{}", paths::TOKEN_DIR, paths::TOKEN_FILE),
        "--pod-uid=$(POD_UID)".to_owned(),
    ];
    if settings.log_format != LogFormat::Text {
        args.push(format!("--log-format={}", settings.log_format));
    }
    let secret_wait = settings.secret_wait.as_secs().min(attempt.longest_wait_seconds());
    args.push(format!("--secret-wait={secret_wait}"));
    args.extend(settings.skill_directory.worker_args());
    args.extend(worker_pod::address_args(settings, &attempt.shared_hosts, &attempt.denied_ranges));
    args
}

/// The revision that a worker pod was created with.
pub fn revision_of(pod: &Pod) -> Option<RevisionRef> {
    let spec = pod.spec.as_ref()?;
    let name = volumes::revision_name(spec.volumes.as_deref()?)?;
    let worker = spec.containers.iter().find(|container| container.name == WORKER_CONTAINER)?;
    let digest = worker.args.iter().flatten().find_map(|arg| arg.strip_prefix(REVISION_DIGEST_FLAG))?;
    Some(RevisionRef { name: name.to_owned(), digest: digest.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::super::part::build_job_part;
    use super::*;
    use crate::job::fixtures::{mcp_settings, valid_attempt, worker_settings};
    use crate::job::validate::BoundResources;
    use crate::mcp_container::scripts;
    use crate::mcp_container::sidecar::Sidecar;
    use bloomery_crds::v1alpha1::McpServer;

    fn built(attempt: &ValidAttempt) -> Pod {
        build_pod(attempt, &worker_settings(), &build_job_part(attempt).unwrap())
    }

    fn yaml(pod: &Pod) -> String {
        serde_yaml::to_string(&serde_json::to_value(pod).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_pod() {
        insta::assert_snapshot!(yaml(&built(&valid_attempt())));
    }

    /// The attempt with an MCP server as a sidecar, which gets secrets that the Job binds.
    fn with_sidecar() -> ValidAttempt {
        let skill = crate::skill::fixtures::with_sidecar();
        let container = skill.spec.mcp_server.as_ref().and_then(McpServer::sidecar).unwrap();
        let bound = serde_json::from_value(serde_json::json!({
            "ledger": {"secretKeyRef": {"name": "ledger", "key": "dsn"}}, "key": {"secretKeyRef": {"name": "ci", "key": "git"}},
        }))
        .unwrap();
        let sidecar = Sidecar::new(container, None, &mcp_settings()).unwrap().with_secrets(&bound);
        ValidAttempt { sidecars: vec![sidecar], ..valid_attempt() }
    }

    #[test]
    fn the_whole_pod_with_an_mcp_server() {
        insta::assert_snapshot!(yaml(&built(&with_sidecar())));
    }

    #[test]
    fn the_whole_pod_with_an_mcp_server_and_scripts() {
        let mut attempt = with_sidecar();
        let spec = crate::skill::fixtures::with_scripts().spec;
        attempt.sidecars.extend(scripts::sidecar(&spec, &attempt.revision.name, &mcp_settings()).unwrap());
        insta::assert_snapshot!(yaml(&built(&attempt)));
    }

    #[test]
    fn an_mcp_server_sees_only_the_file_systems_and_its_own_volumes() {
        let spec = built(&with_sidecar()).spec.unwrap();
        let own = ["mcp-tmp", "bridge", "mcp-secrets"];
        let server = spec.init_containers.as_ref().unwrap().last().unwrap();
        let worker = &spec.containers[0];
        assert_eq!((server.name.as_str(), server.restart_policy.as_deref()), ("mcp", Some("Always")));
        let mounts = |container: &Container| container.volume_mounts.clone().unwrap();
        let (of_server, of_worker) = (mounts(server), mounts(worker));
        let shared = of_server.iter().filter(|mount| !own.contains(&mount.name.as_str()));
        let shared: Vec<_> = shared.collect();
        assert_eq!(shared.len(), 2);
        for mount in shared {
            assert!(mount.mount_path.starts_with("/resources/") && of_worker.contains(mount), "{mount:?}");
        }
        assert!(of_worker.iter().all(|mount| !own.contains(&mount.name.as_str())), "{of_worker:?}");
        assert_ne!(spec.share_process_namespace, Some(true));
    }

    #[test]
    fn a_job_without_bindings_and_keys_mounts_only_the_common_volumes() {
        let mut attempt = ValidAttempt { bound: BoundResources::default(), ..valid_attempt() };
        attempt.models.truncate(1);
        attempt.models[0].api_key = None;
        let spec = built(&attempt).spec.unwrap();
        let names: Vec<_> = spec.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
        assert_eq!(names, ["revision", "job", "memory", "token", "tmp"]);
        assert_eq!(spec.containers[0].volume_mounts.as_ref().unwrap().len(), names.len());
    }

    #[test]
    fn the_deadline_is_limited_to_the_maximum_of_the_api_server() {
        for (remaining, deadline) in [(1100, 1400), (2_147_483_347, 2_147_483_647), (u64::MAX, 2_147_483_647)] {
            let attempt = ValidAttempt { remaining_seconds: remaining, ..valid_attempt() };
            assert_eq!(built(&attempt).spec.unwrap().active_deadline_seconds, Some(deadline));
        }
    }

    #[test]
    fn the_wait_for_a_missing_key_ends_before_the_deadline_of_the_pod() {
        for (remaining, wait) in [(1100, "--secret-wait=900"), (60, "--secret-wait=240"), (0, "--secret-wait=180")] {
            let attempt = ValidAttempt { remaining_seconds: remaining, ..valid_attempt() };
            let spec = built(&attempt).spec.unwrap();
            assert!(spec.containers[0].args.iter().flatten().any(|arg| arg == wait), "{remaining}: {wait}");
        }
    }

    #[test]
    fn the_revision_can_be_read_from_the_pod() {
        let attempt = valid_attempt();
        assert_eq!(revision_of(&built(&attempt)), Some(attempt.revision));
        assert_eq!(revision_of(&Pod::default()), None);
    }

    #[test]
    fn the_worker_receives_the_addresses_that_it_may_and_may_not_connect_to() {
        let denied_ranges = vec!["10.1.0.0/24".parse().unwrap()];
        let attempt = ValidAttempt { shared_hosts: vec!["gateway.ai.svc".into()], denied_ranges, ..valid_attempt() };
        let endpoint_ranges = vec!["10.1.0.0/16".parse().unwrap(), "fd12::/16".parse().unwrap()];
        let settings = WorkerSettings { endpoint_ranges, ..worker_settings() };
        let spec = build_pod(&attempt, &settings, &build_job_part(&attempt).unwrap()).spec.unwrap();
        let args = spec.containers[0].args.as_deref().unwrap();
        let expected = [
            "--endpoint-range=10.1.0.0/16",
            "--endpoint-range=fd12::/16",
            "--shared-host=gateway.ai.svc",
            "--deny-range=10.1.0.0/24",
        ];
        assert_eq!(args[args.len() - 4..], expected);
    }

    #[test]
    fn the_installation_sets_scheduling_pull_secrets_and_the_log_format() {
        let defaults = r#"{"imagePullSecrets": [{"name": "pull"}], "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "agents", "operator": "Exists"}], "priorityClassName": "batch",
            "podLabels": {"team": "agents", "bloomery.dev/job": "forged"}, "podAnnotations": {"mesh/inject": "false"}}"#;
        let pod = serde_json::from_str(defaults).unwrap();
        let settings = WorkerSettings { pod, log_format: LogFormat::Json, ..worker_settings() };
        let attempt = valid_attempt();
        let pod = build_pod(&attempt, &settings, &build_job_part(&attempt).unwrap());
        let (labels, annotations) = (pod.metadata.labels.unwrap(), pod.metadata.annotations.unwrap());
        assert_eq!((labels["team"].as_str(), labels["bloomery.dev/job"].as_str()), ("agents", "refund"));
        assert_eq!(annotations["mesh/inject"], "false");
        let spec = pod.spec.unwrap();
        assert!(spec.containers[0].args.as_ref().unwrap().contains(&"--log-format=json".to_owned()));
        assert_eq!(spec.image_pull_secrets.unwrap()[0].name, "pull");
        assert_eq!(spec.node_selector.unwrap()["disk"], "ssd");
        assert_eq!(spec.tolerations.unwrap()[0].key.as_deref(), Some("agents"));
        assert_eq!(spec.priority_class_name.as_deref(), Some("batch"));
    }

    #[test]
    fn the_platform_may_choose_users_and_groups() {
        let settings = WorkerSettings { uids_from_platform: true, ..worker_settings() };
        let attempt = valid_attempt();
        let spec = build_pod(&attempt, &settings, &build_job_part(&attempt).unwrap()).spec.unwrap();
        let context = spec.security_context.unwrap();
        assert_eq!((context.run_as_user, context.run_as_group, context.fs_group), (None, None, None));
        assert_eq!(context.run_as_non_root, Some(true));
        assert!(context.seccomp_profile.is_some());
    }

    #[test]
    fn a_skill_adds_what_the_installation_allows() {
        let own = r#"{"nodeSelector": {"gpu": "yes"}, "labels": {"team": "a"}, "priorityClassName": "high"}"#;
        let attempt = ValidAttempt { pod: Some(serde_json::from_str(own).unwrap()), ..valid_attempt() };
        let installation = r#"{"skillMaySet": ["nodeSelector"], "podLabels": {"kueue.x-k8s.io/queue-name": "agents"}}"#;
        let pod = serde_json::from_str(installation).unwrap();
        let settings = WorkerSettings { pod, ..worker_settings() };
        let pod = build_pod(&attempt, &settings, &build_job_part(&attempt).unwrap());
        let spec = pod.spec.unwrap();
        assert_eq!((spec.node_selector.unwrap()["gpu"].as_str(), spec.priority_class_name), ("yes", None));
        let labels = pod.metadata.labels.unwrap();
        assert!(!labels.contains_key("team"));
        assert_eq!(labels["kueue.x-k8s.io/queue-name"], "agents", "Kueue queues worker pods");
    }

    #[test]
    fn the_environment_holds_only_the_uid_of_the_pod() {
        let spec = built(&valid_attempt()).spec.unwrap();
        let env: Vec<_> = spec.containers[0].env.iter().flatten().map(|env| env.name.as_str()).collect();
        assert_eq!((env, &spec.containers[0].env_from), (vec!["POD_UID"], &None));
    }
}
