//! The bindings of a Job.

use super::super::shared::SecretKeyRef;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The binding of a resource. Exactly one of `value`, `secretKeyRef` and `persistentVolumeClaim` is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.value), has(self.secretKeyRef), has(self.persistentVolumeClaim)].filter(x, x).size() == 1").message("exactly one of value, secretKeyRef and persistentVolumeClaim is needed"))]
pub struct Binding {
    /// The URL of an `api_endpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub value: Option<String>,
    /// The secret value of a `connection_string` or a `credential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
    /// The volume of a `filesystem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimBinding>,
}

/// A directory or a file of a PersistentVolumeClaim in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimBinding {
    /// The name of the claim. The claim of the tenant's memory is not allowed.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[x_kube(validation = Rule::new("self != 'bloomery-memory'").message("is the tenant's memory, which no Job may bind"))]
    pub claim_name: String,
    /// A path within the volume. Default: the whole volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("!self.startsWith('/') && !self.split('/').exists(part, part == '..')").message("must stay within the volume: no leading '/', no '..'"))]
    pub sub_path: Option<String>,
    /// True if the volume is mounted read-only. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

impl ClaimBinding {
    /// Returns whether the volume is mounted read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or(true)
    }
}
