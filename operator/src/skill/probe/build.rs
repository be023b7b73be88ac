//! Builds the pod of a probe.

use super::decide::DEADLINE_SECONDS;
use super::subject::Wanted;
use crate::job::paths;
use crate::job::token_source;
use crate::owned;
use crate::settings::{LogFormat, WorkerSettings};
use bloomery_crds::names;
use bloomery_crds::pod::{self, WORKER_CONTAINER};
use bloomery_crds::probe::{ProbePart, SkillIdentity};
use bloomery_crds::run::{self, ReportEndpoint, Sealed};
use bloomery_crds::v1alpha1::RevisionRef;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, DownwardAPIVolumeFile, DownwardAPIVolumeSource, ObjectFieldSelector, Pod,
    PodSpec, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;

/// The directory of the probe's part.
const PART_DIR: &str = "/etc/bloomery/probe";

/// The name of the file of the probe's part, in [`PART_DIR`].
const PART_FILE: &str = "part.json";

// The names of the volumes.
const REVISION: &str = "revision";
const PART: &str = "part";
const TOKEN: &str = "token";

/// The inputs of the pod of a probe.
#[derive(Debug, Clone)]
pub struct ProbeInputs {
    /// The Skill.
    pub skill: SkillIdentity,
    /// The owner reference to the Skill.
    pub owner: OwnerReference,
    /// The revision with the address of the server and the rules.
    pub revision: RevisionRef,
    /// What the probe verifies.
    pub wanted: Wanted,
    /// The number of the try.
    pub number: u32,
    /// The report endpoint.
    pub report: ReportEndpoint,
}

/// Builds the pod of a probe. It has no Kubernetes credentials, no memory and no Secrets, and passes the `restricted` Pod Security
/// Standard.
///
/// # Errors
/// If the probe's part cannot be serialized.
pub fn build_pod(inputs: &ProbeInputs, settings: &WorkerSettings) -> Result<Pod, serde_json::Error> {
    let ProbeInputs { skill, owner, revision, wanted, number, report } = inputs;
    let name = names::probe_pod(&skill.name, &skill.uid, &wanted.probe, *number);
    let part =
        ProbePart { skill: skill.clone(), pod: name.clone(), subject: wanted.subject.clone(), report: report.clone() };
    let part = run::seal(&part)?;
    let mut labels = owned::labels(names::COMPONENT_PROBE);
    labels.insert(names::LABEL_SKILL.to_owned(), skill.name.clone());
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(skill.namespace.clone()),
        labels: Some(labels),
        annotations: Some(BTreeMap::from([
            (names::ANNOTATION_PROBE_PART.to_owned(), part.text.clone()),
            (names::ANNOTATION_PROBE_KEY.to_owned(), wanted.probe.to_string()),
            (names::ANNOTATION_PROBE_TRY.to_owned(), number.to_string()),
        ])),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    };
    Ok(Pod { metadata, spec: Some(spec(skill, revision, settings, &part)), status: None })
}

fn spec(skill: &SkillIdentity, revision: &RevisionRef, settings: &WorkerSettings, part: &Sealed) -> PodSpec {
    let mut spec = PodSpec {
        service_account_name: Some(names::worker_service_account(&skill.name)),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        restart_policy: Some("Never".to_owned()),
        active_deadline_seconds: Some(DEADLINE_SECONDS),
        termination_grace_period_seconds: Some(1),
        security_context: Some(pod::restricted_for_memory(
            Some(settings.run_as_user),
            Some(settings.run_as_group),
            Some(settings.fs_group),
        )),
        containers: vec![container(revision, settings, part)],
        volumes: Some(volumes(revision)),
        ..PodSpec::default()
    };
    settings.pod.apply_to(&mut spec);
    spec
}

fn container(revision: &RevisionRef, settings: &WorkerSettings, part: &Sealed) -> Container {
    let mut args = vec![
        "probe".to_owned(),
        format!("--revision={}", paths::revision()),
        format!("--revision-digest={}", revision.digest),
        format!("--part={PART_DIR}/{PART_FILE}"),
        format!("--part-digest={}", part.digest),
        format!("--token={}/{}", paths::TOKEN_DIR, paths::TOKEN_FILE),
    ];
    if settings.log_format != LogFormat::Text {
        args.push(format!("--log-format={}", settings.log_format));
    }
    Container {
        name: WORKER_CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        image_pull_policy: Some(settings.pull_policy.to_string()),
        args: Some(args),
        resources: Some(settings.resources.clone()),
        security_context: Some(SecurityContext { run_as_non_root: Some(true), ..pod::restricted_container() }),
        termination_message_policy: Some("File".to_owned()),
        volume_mounts: Some(mounts()),
        ..Container::default()
    }
}

fn volumes(revision: &RevisionRef) -> Vec<Volume> {
    let named = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
    let field_path = format!("metadata.annotations['{}']", names::ANNOTATION_PROBE_PART);
    let part = DownwardAPIVolumeFile {
        path: PART_FILE.to_owned(),
        field_ref: Some(ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() }),
        ..DownwardAPIVolumeFile::default()
    };
    let part = DownwardAPIVolumeSource { items: Some(vec![part]), ..DownwardAPIVolumeSource::default() };
    let revision = ConfigMapVolumeSource { name: revision.name.clone(), ..ConfigMapVolumeSource::default() };
    vec![
        Volume { config_map: Some(revision), ..named(REVISION) },
        Volume { downward_api: Some(part), ..named(PART) },
        Volume { projected: Some(token_source()), ..named(TOKEN) },
    ]
}

fn mounts() -> Vec<VolumeMount> {
    let read_only = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    vec![read_only(REVISION, paths::REVISION_DIR), read_only(PART, PART_DIR), read_only(TOKEN, paths::TOKEN_DIR)]
}
