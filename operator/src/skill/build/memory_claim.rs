//! Builds the memory claim of a tenant.

use crate::owned;
use crate::settings::MemorySettings;
use bloomery_crds::names;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Builds the memory claim of a tenant. No Skill owns it, because it outlives all of them.
pub fn build_memory_claim(namespace: &str, settings: &MemorySettings) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(names::MEMORY_CLAIM.to_owned()),
            labels: Some(owned::labels("memory")),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![settings.access_mode.to_string()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), settings.size.clone())].into()),
                ..VolumeResourceRequirements::default()
            }),
            storage_class_name: settings.class.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::yaml;
    use super::*;
    use crate::settings::AccessMode;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    #[test]
    fn a_claim_of_the_default_class_and_one_for_several_nodes() {
        let plain =
            MemorySettings { size: Quantity("3Gi".into()), class: None, access_mode: AccessMode::ReadWriteOnce };
        insta::assert_snapshot!("memory_claim", yaml(&build_memory_claim("acme", &plain)));
        let shared = MemorySettings {
            size: Quantity("7Gi".into()),
            class: Some("nfs".into()),
            access_mode: AccessMode::ReadWriteMany,
        };
        insta::assert_snapshot!("memory_claim_shared", yaml(&build_memory_claim("acme", &shared)));
    }
}
