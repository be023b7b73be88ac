//! Metadata of the objects that the operator creates: labels and owners.

use bloomery_crds::names;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{PatchParams, PostParams};
use kube::core::Resource;
use std::collections::BTreeMap;

/// The labels of an object that the operator creates.
pub fn labels(component: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::LABEL_MANAGED_BY.to_owned(), names::MANAGER.to_owned()),
        (names::LABEL_COMPONENT.to_owned(), component.to_owned()),
    ])
}

/// Returns whether an object has the label of the objects that the operator creates.
pub fn is_managed(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(names::LABEL_MANAGED_BY)).is_some_and(|manager| manager == names::MANAGER)
}

/// The owner reference to an object. Kubernetes deletes the owned object with its owner.
///
/// Returns none for an owner that is not stored yet, and so has no UID.
pub fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner.controller_owner_ref(&()).map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// Returns whether the owner with this UID controls the object.
pub fn is_owned_by(metadata: &ObjectMeta, uid: &str) -> bool {
    let references = metadata.owner_references.iter().flatten();
    references.into_iter().any(|reference| reference.controller == Some(true) && reference.uid == uid)
}

/// Returns whether this pod belongs to the Job of this name and UID.
///
/// Anybody who may create pods can set an owner reference. An admission policy reserves the label of the Job for the operator.
/// Only [`crate::pod_seals`] prove that the operator created a pod, even if the policy was not in force.
pub fn is_worker_pod(pod: &Pod, (job, job_uid): (&str, &str)) -> bool {
    let labelled = pod.metadata.labels.as_ref().and_then(|labels| labels.get(names::LABEL_JOB));
    labelled.is_some_and(|label| label == job) && is_owned_by(&pod.metadata, job_uid)
}

/// The parameters of create and replace requests: they name the operator as the field manager.
pub fn post_params() -> PostParams {
    PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() }
}

/// The parameters of patches: they name the operator as the field manager.
pub fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(names::MANAGER.to_owned()), ..PatchParams::default() }
}
