//! The volumes of a worker pod, and their mounts.

use super::tenant_volumes;
use crate::job::paths;
use crate::job::validate::ValidAttempt;
use crate::worker_pod::{part_volume, read_only_mount, revision_volume, token_volume, volume};
use bloomery_crds::names;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, PersistentVolumeClaimVolumeSource, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

// The names of the volumes.
const REVISION: &str = "revision";
const JOB: &str = "job";
const MEMORY: &str = "memory";
const TOKEN: &str = "token";
const SCRATCH: &str = "tmp";

/// The volumes of a worker pod.
pub(super) fn volumes(attempt: &ValidAttempt) -> Vec<Volume> {
    let memory = PersistentVolumeClaimVolumeSource {
        claim_name: names::MEMORY_CLAIM.to_owned(),
        ..PersistentVolumeClaimVolumeSource::default()
    };
    let scratch =
        EmptyDirVolumeSource { size_limit: Some(Quantity("64Mi".to_owned())), ..EmptyDirVolumeSource::default() };
    let mut volumes = vec![
        revision_volume(REVISION, &attempt.revision.name),
        part_volume(JOB, paths::JOB_FILE, names::ANNOTATION_JOB_PART),
        Volume { persistent_volume_claim: Some(memory), ..volume(MEMORY) },
        token_volume(TOKEN, paths::TOKEN_FILE),
        Volume { empty_dir: Some(scratch), ..volume(SCRATCH) },
    ];
    volumes.extend(tenant_volumes::volumes(attempt));
    volumes
}

/// The mounts of the volumes.
pub(super) fn mounts(attempt: &ValidAttempt) -> Vec<VolumeMount> {
    let memory = VolumeMount {
        name: MEMORY.to_owned(),
        mount_path: paths::memory(&attempt.skill),
        sub_path: Some(attempt.skill.clone()),
        ..VolumeMount::default()
    };
    let scratch = VolumeMount { name: SCRATCH.to_owned(), mount_path: "/tmp".to_owned(), ..VolumeMount::default() };
    let mut mounts = vec![
        read_only_mount(REVISION, paths::REVISION_DIR),
        read_only_mount(JOB, paths::JOB_DIR),
        memory,
        read_only_mount(TOKEN, paths::TOKEN_DIR),
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
