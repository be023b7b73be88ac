//! The known state of an object, and its comparison with the wanted state.

use super::subset;
use bloomery_crds::names::ANNOTATION_APPLIED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{PartialObjectMeta, Resource};
use serde::Serialize;
use serde_json::Value;

/// The known state of an object.
pub struct KnownObject {
    pub(super) metadata: ObjectMeta,
    /// The object as JSON; only its metadata if `metadata_only` is set.
    pub(super) value: Value,
    pub(super) metadata_only: bool,
}

impl KnownObject {
    /// A whole object, as cached or just read; none if it cannot be serialized.
    pub fn full<K: Resource + Serialize>(object: &K) -> Option<Self> {
        let value = serde_json::to_value(object).ok()?;
        Some(Self { metadata: object.meta().clone(), value, metadata_only: false })
    }

    /// The cached metadata of an immutable object. The applier reads the whole object once.
    pub fn metadata<K>(object: &PartialObjectMeta<K>) -> Option<Self>
    where
        PartialObjectMeta<K>: Serialize,
    {
        let value = serde_json::to_value(object).ok()?;
        Some(Self { metadata: object.metadata.clone(), value, metadata_only: true })
    }

    /// Returns whether `wanted` is the state that the operator applied last. If the object differs from it, another
    /// writer has changed the object.
    pub(super) fn was_applied(&self, wanted: &Value) -> bool {
        let digest_of = |object: &Value| object.get("metadata")?.get("annotations")?.get(ANNOTATION_APPLIED).cloned();
        let stored_digest = digest_of(&self.value);
        stored_digest.is_some() && stored_digest == digest_of(wanted)
    }

    /// Returns whether the object is marked immutable. Always false if only the metadata is known.
    pub(super) fn is_immutable(&self) -> bool {
        self.value.get("immutable") == Some(&Value::Bool(true))
    }

    /// Returns whether the field `data` contains the wanted `data`.
    pub(super) fn contains_data_of(&self, wanted: &Value) -> bool {
        let data = |object: &Value| object.get("data").cloned().unwrap_or_default();
        subset::contains(&data(wanted), &data(&self.value))
    }

    /// Returns whether the known part of the object has the wanted state.
    ///
    /// The spec of a network policy must also have nothing else, because what another writer adds to a rule can allow more. An apply
    /// replaces such additions, because all fields of this spec are atomic.
    pub(super) fn satisfies(&self, wanted: &Value) -> bool {
        if !self.metadata_only {
            let is_exact = || wanted.get("kind").is_none_or(|kind| kind != "NetworkPolicy") || self.has_no_more(wanted);
            return subset::contains(wanted, &self.value) && is_exact();
        }
        let (Some(wanted), Some(live)) = (wanted.get("metadata"), self.value.get("metadata")) else { return false };
        subset::contains(wanted, live)
    }

    /// Returns whether the spec of the object is the wanted one. The API server leaves out empty lists of the spec itself. Within a rule,
    /// an empty value counts: an empty selector selects everything.
    fn has_no_more(&self, wanted: &Value) -> bool {
        let spec = |object: &Value| {
            let fields = object.get("spec").and_then(Value::as_object).into_iter().flatten();
            let fields = fields.filter(|(_, value)| value.as_array().is_none_or(|items| !items.is_empty()));
            fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
        };
        spec(&self.value) == spec(wanted)
    }
}
