//! The parts that all pods with the image of the workers share: workers of Jobs, probes, and pods that remove a directory.

mod credentials;

pub use credentials::{Credentials, volume_names};

use crate::settings::{PodDefaults, WorkerSettings};
use bloomery_crds::names;
use bloomery_crds::pod::{self, WORKER_CONTAINER};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, DownwardAPIVolumeFile, DownwardAPIVolumeSource, ObjectFieldSelector, PodSpec,
    ProjectedVolumeSource, SecurityContext, ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection,
};

/// The lifetime in seconds of the token that reports carry. The kubelet renews the token after four fifths of it.
const TOKEN_EXPIRATION_SECONDS: i64 = 3600;

/// Returns a pod without Kubernetes credentials that runs once, and passes the `restricted` Pod Security Standard. `pod` are the
/// settings of scheduling.
pub fn spec(
    settings: &WorkerSettings,
    pod: &PodDefaults,
    container: Container,
    volumes: Vec<Volume>,
    deadline_seconds: i64,
) -> PodSpec {
    let chosen = |id: i64| (!settings.uids_from_platform).then_some(id);
    let mut spec = PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: Some(deadline_seconds),
        security_context: Some(pod::restricted_for_memory(
            chosen(settings.run_as_user),
            chosen(settings.run_as_group),
            chosen(settings.fs_group),
        )),
        containers: vec![container],
        volumes: Some(volumes),
        ..PodSpec::default()
    };
    pod.apply_to(&mut spec);
    spec
}

/// Returns the container that runs the worker's program.
pub fn container(settings: &WorkerSettings, args: Vec<String>, mounts: Vec<VolumeMount>) -> Container {
    Container {
        name: WORKER_CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        image_pull_policy: Some(settings.pull_policy.to_string()),
        args: Some(args),
        resources: Some(settings.resources.clone()),
        security_context: Some(SecurityContext { run_as_non_root: Some(true), ..pod::restricted_container() }),
        // Kubernetes must not use the end of the container's output as the termination message.
        termination_message_policy: Some("File".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// Returns the arguments that say which addresses the pod may and may not connect to.
pub fn address_args(settings: &WorkerSettings, shared_hosts: &[String], denied_ranges: &[IpNet]) -> Vec<String> {
    let allowed = settings.endpoint_ranges.iter().map(|range| format!("--endpoint-range={range}"));
    let shared = shared_hosts.iter().map(|host| format!("--shared-host={host}"));
    let denied = denied_ranges.iter().map(|range| format!("--deny-range={range}"));
    allowed.chain(shared).chain(denied).collect()
}

/// Returns an empty volume with a name, for the fields of which one is set.
pub fn volume(name: &str) -> Volume {
    Volume { name: name.to_owned(), ..Volume::default() }
}

/// Returns the volume with the `ConfigMap` of a revision.
pub fn revision_volume(name: &str, config_map: &str) -> Volume {
    let source = ConfigMapVolumeSource { name: config_map.to_owned(), ..ConfigMapVolumeSource::default() };
    Volume { config_map: Some(source), ..volume(name) }
}

/// Returns the volume with a part of the run document, which is an annotation of the pod, in this file.
pub fn part_volume(name: &str, file: &str, annotation: &str) -> Volume {
    let field_path = format!("metadata.annotations['{annotation}']");
    let file = DownwardAPIVolumeFile {
        path: file.to_owned(),
        field_ref: Some(ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() }),
        ..DownwardAPIVolumeFile::default()
    };
    let source = DownwardAPIVolumeSource { items: Some(vec![file]), ..DownwardAPIVolumeSource::default() };
    Volume { downward_api: Some(source), ..volume(name) }
}

/// Returns the volume with the projected token, in this file, with which a worker or a probe reports.
pub fn token_volume(name: &str, file: &str) -> Volume {
    let token = ServiceAccountTokenProjection {
        audience: Some(names::REPORT_AUDIENCE.to_owned()),
        expiration_seconds: Some(TOKEN_EXPIRATION_SECONDS),
        path: file.to_owned(),
    };
    let source = ProjectedVolumeSource {
        sources: Some(vec![VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() }]),
        ..ProjectedVolumeSource::default()
    };
    Volume { projected: Some(source), ..volume(name) }
}

/// Returns a read-only mount of a volume.
pub fn read_only_mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}
