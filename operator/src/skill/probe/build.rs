//! Builds the pod of a probe.

use super::decide::DEADLINE_SECONDS;
use super::subject::Wanted;
use crate::job::paths;
use crate::mcp_container::sidecar::Sidecar;
use crate::owned;
use crate::settings::{LogFormat, PodDefaults, WorkerSettings};
use crate::worker_pod::{self, Credentials, part_volume, read_only_mount, revision_volume, token_volume};
use bloomery_crds::names;
use bloomery_crds::probe::{ProbePart, SkillIdentity};
use bloomery_crds::run::{self, ExternalMcp, ReportEndpoint, Sealed};
use bloomery_crds::v1alpha1::{PodSettings, RevisionRef};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, PodSpec, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;

/// The directory of the probe's part.
const PART_DIR: &str = "/etc/bloomery/probe";

/// The name of the file of the probe's part, in [`PART_DIR`].
const PART_FILE: &str = "part.json";

/// The seconds that a server in the pod may take to answer. It starts with the pod, and not before it as other servers do.
const SIDECAR_PATIENCE_SECONDS: u32 = 150;

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
    /// The MCP server, if each Job has one of its own.
    pub sidecar: Option<ProbedSidecar>,
    /// The MCP server, if it is outside of the cluster.
    pub external: Option<ProbedExternal>,
    /// The fields that the Skill sets in the pods of its workers.
    pub pod: Option<PodSettings>,
}

/// The MCP server of a Job, for a probe.
#[derive(Debug, Clone)]
pub struct ProbedSidecar {
    /// The server, with the values for a probe.
    pub server: Sidecar,
    /// The names of the file systems that Jobs bind. In a probe, they are empty directories.
    pub filesystems: Vec<String>,
}

/// An MCP server outside of the cluster.
#[derive(Debug, Clone)]
pub struct ProbedExternal {
    /// Its credentials and certificates.
    pub server: ExternalMcp,
    /// The hosts that the probe may connect to at private addresses.
    pub shared_hosts: Vec<String>,
    /// The ranges that the probe may never connect to.
    pub denied_ranges: Vec<IpNet>,
}

/// Builds the pod of a probe. It has no Kubernetes credentials, no memory and no Secrets but those of `mcpServer.headers` and
/// `mcpServer.ca`, and passes the `restricted` Pod Security Standard.
///
/// # Errors
/// If the probe's part cannot be serialized.
pub fn build_pod(inputs: &ProbeInputs, settings: &WorkerSettings) -> Result<Pod, serde_json::Error> {
    let ProbeInputs { skill, owner, revision: _, wanted, number, report, sidecar: _, external, pod } = inputs;
    let pod = settings.pod.with_skill(pod.as_ref()).without_queue();
    let name = names::probe_pod(&skill.name, &skill.uid, &wanted.probe, *number);
    let part = run::seal(&ProbePart {
        skill: skill.clone(),
        pod: name.clone(),
        subject: wanted.subject.clone(),
        report: report.clone(),
        external_mcp: external.as_ref().map(|external| external.server.clone()),
    })?;
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
    Ok(Pod { metadata, spec: Some(spec(inputs, (settings, &pod), &part)), status: None })
}

fn spec(inputs: &ProbeInputs, (settings, pod): (&WorkerSettings, &PodDefaults), part: &Sealed) -> PodSpec {
    let ProbeInputs { skill, revision, sidecar, external, .. } = inputs;
    let mut mounts = vec![
        read_only_mount(REVISION, paths::REVISION_DIR),
        read_only_mount(PART, PART_DIR),
        read_only_mount(TOKEN, paths::TOKEN_DIR),
    ];
    let mut volumes = vec![
        revision_volume(REVISION, &revision.name),
        part_volume(PART, PART_FILE, names::ANNOTATION_PROBE_PART),
        token_volume(TOKEN, paths::TOKEN_FILE),
    ];
    if let Some(ProbedExternal { server, .. }) = external {
        let credentials = Credentials::new(server.headers.iter().map(|header| &header.file), &server.ca);
        volumes.extend(credentials.volumes());
        mounts.extend(credentials.mounts());
    }
    let directories = sidecar.iter().flat_map(|sidecar| &sidecar.filesystems).enumerate();
    let (empty, of_server): (Vec<Volume>, Vec<VolumeMount>) =
        directories.map(|(index, name)| empty_directory(index, name)).unzip();
    volumes.extend(empty);
    let container = worker_pod::container(settings, args(inputs, settings, part), mounts);
    let mut spec = PodSpec {
        service_account_name: Some(names::worker_service_account(&skill.name)),
        termination_grace_period_seconds: Some(1),
        ..worker_pod::spec(settings, pod, container, volumes, DEADLINE_SECONDS)
    };
    if let Some(sidecar) = sidecar {
        sidecar.server.add_to(&mut spec, settings, of_server);
    }
    spec
}

/// Returns an empty directory at the path of a bound file system.
fn empty_directory(index: usize, resource: &str) -> (Volume, VolumeMount) {
    let name = format!("empty-{index}");
    let size_limit = Some(Quantity("16Mi".to_owned()));
    let source = EmptyDirVolumeSource { size_limit, ..EmptyDirVolumeSource::default() };
    let mount = VolumeMount { name: name.clone(), mount_path: paths::resource(resource), ..VolumeMount::default() };
    (Volume { empty_dir: Some(source), ..worker_pod::volume(&name) }, mount)
}

fn args(inputs: &ProbeInputs, settings: &WorkerSettings, part: &Sealed) -> Vec<String> {
    let revision = &inputs.revision;
    let mut args = vec![
        "probe".to_owned(),
        format!("--revision={}", paths::revision()),
        format!("--revision-digest={}", revision.digest),
        format!("--part={PART_DIR}/{PART_FILE}"),
        format!("--part-digest={}", part.digest),
        format!("--token={}/{}", paths::TOKEN_DIR, paths::TOKEN_FILE),
    ];
    if inputs.sidecar.is_some() {
        args.push(format!("--patience={SIDECAR_PATIENCE_SECONDS}"));
    }
    if settings.log_format != LogFormat::Text {
        args.push(format!("--log-format={}", settings.log_format));
    }
    if let Some(ProbedExternal { shared_hosts, denied_ranges, .. }) = &inputs.external {
        args.extend(worker_pod::address_args(settings, shared_hosts, denied_ranges));
    }
    args
}
