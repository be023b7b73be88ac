//! Builds the parts of a pod that give an MCP server the public keys of the tokens, so that it can verify them itself.
//!
//! The keys are an annotation of the pod, mounted as a file. So they cost no object of their own, and are restored with the Deployment.

use crate::worker_pod::{part_volume, read_only_mount};
use bloomery_crds::names;
use bloomery_token::{PublicKey, jwks};
use k8s_openapi::api::core::v1::{EnvVar, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of the volume.
const NAME: &str = "jwks";

/// The directory of the file. It is not one that an image has.
const DIR: &str = "/bloomery";

/// The name of the file.
const FILE: &str = "jwks.json";

/// The variable with the path of the file.
const VARIABLE: &str = "BLOOMERY_JWKS_FILE";

/// Adds the annotation to the metadata of a pod.
pub(super) fn annotate(metadata: &mut ObjectMeta, keys: &[PublicKey]) {
    metadata.annotations.get_or_insert_default().insert(names::ANNOTATION_JWKS.to_owned(), jwks(keys));
}

/// Builds the volume with the file.
pub(super) fn volume() -> Volume {
    part_volume(NAME, FILE, names::ANNOTATION_JWKS)
}

/// Builds the mount of the volume.
pub(super) fn mount() -> VolumeMount {
    read_only_mount(NAME, DIR)
}

/// Adds the variable with the path of the file to those of the author, which win.
pub(super) fn add_variable(env: &mut Vec<EnvVar>) {
    if env.iter().all(|variable| variable.name != VARIABLE) {
        let value = Some(format!("{DIR}/{FILE}"));
        env.push(EnvVar { name: VARIABLE.to_owned(), value, value_from: None });
    }
}
