//! The volumes of a worker pod, and their mounts.

use super::tenant_volumes;
use crate::job::paths;
use crate::job::validate::ValidAttempt;
use bloomery_crds::names;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource, ObjectFieldSelector,
    PersistentVolumeClaimVolumeSource, ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeMount,
    VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

// The names of the volumes.
const REVISION: &str = "revision";
const JOB: &str = "job";
const MEMORY: &str = "memory";
const TOKEN: &str = "token";
const SCRATCH: &str = "tmp";

/// The lifetime in seconds of the token that reports carry. The kubelet renews the token after four fifths of it.
const TOKEN_EXPIRATION_SECONDS: i64 = 3600;

/// The field path of the Job's part for the downward API.
fn job_part_field_path() -> String {
    format!("metadata.annotations['{}']", names::ANNOTATION_JOB_PART)
}

/// The volumes of a worker pod.
pub(super) fn volumes(attempt: &ValidAttempt) -> Vec<Volume> {
    let named = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
    let revision = ConfigMapVolumeSource { name: attempt.revision.name.clone(), ..ConfigMapVolumeSource::default() };
    let part = DownwardAPIVolumeFile {
        path: paths::JOB_FILE.to_owned(),
        field_ref: Some(ObjectFieldSelector { field_path: job_part_field_path(), ..ObjectFieldSelector::default() }),
        ..DownwardAPIVolumeFile::default()
    };
    let part = DownwardAPIVolumeSource { items: Some(vec![part]), ..DownwardAPIVolumeSource::default() };
    let memory = PersistentVolumeClaimVolumeSource {
        claim_name: names::MEMORY_CLAIM.to_owned(),
        ..PersistentVolumeClaimVolumeSource::default()
    };
    let scratch =
        EmptyDirVolumeSource { size_limit: Some(Quantity("64Mi".to_owned())), ..EmptyDirVolumeSource::default() };
    let mut volumes = vec![
        Volume { config_map: Some(revision), ..named(REVISION) },
        Volume { downward_api: Some(part), ..named(JOB) },
        Volume { persistent_volume_claim: Some(memory), ..named(MEMORY) },
        Volume { projected: Some(token_source()), ..named(TOKEN) },
        Volume { empty_dir: Some(scratch), ..named(SCRATCH) },
    ];
    volumes.extend(tenant_volumes::volumes(attempt));
    volumes
}

/// The projected token with which a worker or a probe reports.
pub(crate) fn token_source() -> ProjectedVolumeSource {
    let token = ServiceAccountTokenProjection {
        audience: Some(names::REPORT_AUDIENCE.to_owned()),
        expiration_seconds: Some(TOKEN_EXPIRATION_SECONDS),
        path: paths::TOKEN_FILE.to_owned(),
    };
    ProjectedVolumeSource {
        sources: Some(vec![VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() }]),
        ..ProjectedVolumeSource::default()
    }
}

/// The mounts of the volumes.
pub(super) fn mounts(attempt: &ValidAttempt) -> Vec<VolumeMount> {
    let read_only = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    let memory = VolumeMount {
        name: MEMORY.to_owned(),
        mount_path: paths::memory(&attempt.skill),
        sub_path: Some(attempt.skill.clone()),
        ..VolumeMount::default()
    };
    let scratch = VolumeMount { name: SCRATCH.to_owned(), mount_path: "/tmp".to_owned(), ..VolumeMount::default() };
    let mut mounts = vec![
        read_only(REVISION, paths::REVISION_DIR),
        read_only(JOB, paths::JOB_DIR),
        memory,
        read_only(TOKEN, paths::TOKEN_DIR),
        scratch,
    ];
    mounts.extend(tenant_volumes::mounts(attempt));
    mounts
}

/// The name of the revision `ConfigMap` that a pod mounts.
pub(super) fn revision_name(volumes: &[Volume]) -> Option<&str> {
    let revision = volumes.iter().find(|volume| volume.name == REVISION)?;
    revision.config_map.as_ref().map(|config_map| config_map.name.as_str())
}
