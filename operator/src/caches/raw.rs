//! Cluster-scoped objects whose whole stored spec is compared with another spec.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::marker::PhantomData;

/// An object whose `spec` is kept as stored, including fields that the types of `k8s-openapi` do not know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawObject<K> {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The spec.
    #[serde(default)]
    pub spec: Value,
    #[serde(skip)]
    kind: PhantomData<K>,
}

#[cfg(test)]
impl<K> RawObject<K> {
    /// Creates an object with this metadata and spec.
    pub(crate) fn new(metadata: ObjectMeta, spec: Value) -> Self {
        Self { metadata, spec, kind: PhantomData }
    }
}

impl<K: Resource<DynamicType = (), Scope = ClusterResourceScope>> Resource for RawObject<K> {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The admission policy, as stored.
pub type AdmissionPolicy = RawObject<ValidatingAdmissionPolicy>;

/// The binding of an admission policy, as stored.
pub type AdmissionBinding = RawObject<ValidatingAdmissionPolicyBinding>;
