//! Writes the status of custom resources, with optimistic concurrency, and only where it would change.

use crate::error::Error;
use crate::metrics::Metrics;
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{RequireFor, RevisionRef, Skill, SkillStatus};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::object::HasStatus;
use kube::core::{Resource, ResourceExt};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of remembered objects. A forgotten object costs at most one refused write.
const MAX_OBJECTS: usize = 8192;

/// The time at which a status is computed, and the generation of the spec that it is computed for.
#[derive(Debug, Clone)]
pub struct StatusStamp {
    /// The current time.
    pub now: Time,
    /// The generation of the object.
    pub generation: Option<i64>,
}

impl StatusStamp {
    /// The stamp of a status that is computed now for this object.
    pub fn new<K: Resource>(object: &K, now: Timestamp) -> Self {
        Self { now: Time(now), generation: object.meta().generation }
    }
}

/// The reason of a condition; none if the condition is absent, or this version does not know its reason.
pub fn reason_of(conditions: &[Condition], kind: ConditionType) -> Option<Reason> {
    conditions::find(conditions, kind)?.reason.parse().ok()
}

/// Returns the condition if it has this reason.
pub fn with_reason(conditions: &[Condition], kind: ConditionType, reason: Reason) -> Option<&Condition> {
    conditions::find(conditions, kind).filter(|condition| condition.reason.parse().ok() == Some(reason))
}

/// Describes why a condition does not hold; none if it holds.
pub fn unmet_message(conditions: &[Condition], kind: ConditionType) -> Option<String> {
    match conditions::find(conditions, kind) {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!("{kind}={} ({}): {}", condition.status, condition.reason, condition.message)),
        None => Some(format!("{kind} is not known yet")),
    }
}

/// Returns the status of a Skill; none if the operator has not checked the latest spec yet.
pub fn checked_status(skill: &Skill) -> Option<&SkillStatus> {
    skill.status.as_ref().filter(|status| status.observed_generation == skill.metadata.generation)
}

/// Returns the revision of a Skill on which a new Job runs; none if there is none yet. A Job that `validates` the Skill runs on the current
/// one, and so do all others unless the Skill requires a validated one for them.
pub fn revision_for(skill: &Skill, validates: bool) -> Option<&RevisionRef> {
    let SkillStatus { revision, validated_revision, .. } = skill.status.as_ref()?;
    let current = validates || !requires_validation(skill);
    if current { revision.as_ref() } else { validated_revision.as_ref() }
}

/// Returns whether a Skill requires a validated revision for its new Jobs.
pub fn requires_validation(skill: &Skill) -> bool {
    skill.spec.validation().and_then(|validation| validation.require_for) == Some(RequireFor::Run)
}

/// Writes statuses, and detects copies of an object that are older than the last write of this process.
pub struct Statuses {
    client: Client,
    metrics: Arc<Metrics>,
    last_versions: Mutex<HashMap<String, u64>>,
}

impl Statuses {
    /// Creates a writer.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics, last_versions: Mutex::default() }
    }

    /// Writes the status of `object` if it differs, and returns the stored object; none if nothing was written. Fields of the stored
    /// status that this version does not know stay.
    ///
    /// # Errors
    /// Returns a conflict if another writer was faster since `object` was read: read again, and decide again.
    pub async fn replace<K>(&self, object: &K, status: K::Status) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + HasStatus
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
        K::Status: Serialize,
    {
        let namespace = object.namespace().unwrap_or_default();
        let action = format!("write the status of {} {namespace}/{}", K::kind(&()), object.name_any());
        let unserializable = |source| Error::Json { what: format!("a status of {}", K::kind(&())), source };
        let before = serde_json::to_value(object.status()).map_err(unserializable)?;
        let after = serde_json::to_value(status).map_err(unserializable)?;
        let Some(change) = difference(&before, &after) else { return Ok(None) };
        let precondition = json!({ "resourceVersion": object.resource_version() });
        let patch = Patch::Merge(json!({ "metadata": precondition, "status": change }));
        let parameters = PatchParams { field_manager: Some(names::MANAGER.to_owned()), ..PatchParams::default() };
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        self.metrics.count_write(&K::kind(&()), "status");
        let stored = api.patch_status(&object.name_any(), &parameters, &patch).await.map_err(Error::api(action))?;
        self.remember(stored.meta().uid.as_deref(), stored.meta().resource_version.as_deref());
        Ok(Some(stored))
    }

    /// Returns whether this copy is older than the last write of this process. The watch will deliver the newer one.
    pub fn is_stale<K: Resource>(&self, object: &K) -> bool {
        let (Some(uid), Some(version)) =
            (&object.meta().uid, parse_resource_version(object.meta().resource_version.as_deref()))
        else {
            return false;
        };
        let mut last_versions = self.last_versions.lock().unwrap_or_else(PoisonError::into_inner);
        match last_versions.get(uid) {
            Some(last) if version < *last => true,
            // The copy contains the last write, so later copies need no check.
            Some(_) => {
                last_versions.remove(uid);
                false
            }
            None => false,
        }
    }

    /// Remembers the version of the last write of an object.
    fn remember(&self, uid: Option<&str>, resource_version: Option<&str>) {
        let (Some(uid), Some(version)) = (uid, parse_resource_version(resource_version)) else { return };
        let mut last_versions = self.last_versions.lock().unwrap_or_else(PoisonError::into_inner);
        if last_versions.len() >= MAX_OBJECTS {
            last_versions.clear();
        }
        last_versions.insert(uid.to_owned(), version);
    }
}

/// Returns the JSON merge patch that changes `before` into `after`; none if there is nothing to change. A merge patch cannot store a
/// null in an object, so a null counts as absent.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let Value::Object(new) = after else { return (before != after).then(|| after.clone()) };
    let empty = Map::new();
    let old = before.as_object().unwrap_or(&empty);
    let mut changes = Map::new();
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(change) = difference(old.get(name).unwrap_or(&Value::Null), value) {
            changes.insert(name.clone(), change);
        }
    }
    let gone = old.iter().filter(|(name, value)| !value.is_null() && new.get(*name).is_none_or(Value::is_null));
    changes.extend(gone.map(|(name, _)| (name.clone(), Value::Null)));
    (!changes.is_empty() || !before.is_object()).then_some(Value::Object(changes))
}

/// Parses a resource version. The versions of one kind are comparable numbers (KEP-5504); anything else is not
/// compared.
pub(crate) fn parse_resource_version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests;
