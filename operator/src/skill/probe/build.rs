//! Builds the pod of a probe.

use super::decide::DEADLINE_SECONDS;
use super::subject::Wanted;
use crate::job::paths;
use crate::owned;
use crate::settings::{LogFormat, PodDefaults, WorkerSettings};
use crate::worker_pod::{self, part_volume, read_only_mount, revision_volume, token_volume};
use bloomery_crds::names;
use bloomery_crds::probe::{ProbePart, SkillIdentity};
use bloomery_crds::run::{self, ReportEndpoint, Sealed};
use bloomery_crds::v1alpha1::{PodSettings, RevisionRef};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
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
    /// The fields that the Skill sets in the pods of its workers.
    pub pod: Option<PodSettings>,
}

/// Builds the pod of a probe. It has no Kubernetes credentials, no memory and no Secrets, and passes the `restricted` Pod Security
/// Standard.
///
/// # Errors
/// If the probe's part cannot be serialized.
pub fn build_pod(inputs: &ProbeInputs, settings: &WorkerSettings) -> Result<Pod, serde_json::Error> {
    let ProbeInputs { skill, owner, revision, wanted, number, report, pod } = inputs;
    let pod = settings.pod.with_skill(pod.as_ref());
    let name = names::probe_pod(&skill.name, &skill.uid, &wanted.probe, *number);
    let part =
        ProbePart { skill: skill.clone(), pod: name.clone(), subject: wanted.subject.clone(), report: report.clone() };
    let part = run::seal(&part)?;
    let mut labels = owned::labels(names::COMPONENT_PROBE);
    labels.insert(names::LABEL_SKILL.to_owned(), skill.name.clone());
    let mut metadata = ObjectMeta {
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
    pod.label(&mut metadata);
    Ok(Pod { metadata, spec: Some(spec(skill, revision, (settings, &pod), &part)), status: None })
}

fn spec(
    skill: &SkillIdentity,
    revision: &RevisionRef,
    (settings, pod): (&WorkerSettings, &PodDefaults),
    part: &Sealed,
) -> PodSpec {
    let mounts = vec![
        read_only_mount(REVISION, paths::REVISION_DIR),
        read_only_mount(PART, PART_DIR),
        read_only_mount(TOKEN, paths::TOKEN_DIR),
    ];
    let volumes = vec![
        revision_volume(REVISION, &revision.name),
        part_volume(PART, PART_FILE, names::ANNOTATION_PROBE_PART),
        token_volume(TOKEN, paths::TOKEN_FILE),
    ];
    let container = worker_pod::container(settings, args(revision, settings, part), mounts);
    PodSpec {
        service_account_name: Some(names::worker_service_account(&skill.name)),
        termination_grace_period_seconds: Some(1),
        ..worker_pod::spec(settings, pod, container, volumes, DEADLINE_SECONDS)
    }
}

fn args(revision: &RevisionRef, settings: &WorkerSettings, part: &Sealed) -> Vec<String> {
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
    args
}
