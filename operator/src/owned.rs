//! The metadata of what the operator makes: labels, and who owns it.

use bloomery_crds::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::core::Resource;
use std::collections::BTreeMap;

/// The labels of an object that the operator made: who manages it and what it is for.
pub fn labels(component: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::LABEL_MANAGED_BY.to_owned(), names::MANAGER.to_owned()),
        (names::LABEL_COMPONENT.to_owned(), component.to_owned()),
    ])
}

/// Whether the operator labelled this object as its own.
pub fn is_managed(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(names::LABEL_MANAGED_BY)).is_some_and(|manager| manager == names::MANAGER)
}

/// The reference to the owner of an object: it goes when its owner goes.
///
/// None for an owner that was not stored yet, and so has no UID.
pub fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner.controller_owner_ref(&()).map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// Whether an object is controlled by the owner of this UID.
pub fn is_owned_by(metadata: &ObjectMeta, uid: &str) -> bool {
    let references = metadata.owner_references.iter().flatten();
    references.into_iter().any(|reference| reference.controller == Some(true) && reference.uid == uid)
}

/// How the operator creates and replaces: as its own field manager.
pub fn post_params() -> PostParams {
    PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() }
}
