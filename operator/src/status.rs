//! Writing the status of our kinds: compare-and-swap, and only where it would change.

use crate::error::Error;
use crate::metrics::Metrics;
use crate::owned;
use bloomery_crds::conditions::{self, ConditionType, Reason};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::core::{Resource, ResourceExt};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// How many objects are remembered at most; who is forgotten costs a refused write at worst.
const MAX_OBJECTS: usize = 8192;

/// When a status is computed, and for which generation of the spec.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// The present.
    pub now: Time,
    /// The generation of the object.
    pub generation: Option<i64>,
}

impl Stamp {
    /// The stamp of a status that is computed now for this object.
    pub fn new<K: Resource>(object: &K, now: Timestamp) -> Self {
        Self { now: Time(now), generation: object.meta().generation }
    }
}

/// The reason of a condition; none for a condition that is absent, or of a reason that this version does not know.
pub fn reason_of(conditions: &[Condition], kind: ConditionType) -> Option<Reason> {
    conditions::find(conditions, kind)?.reason.parse().ok()
}

/// Says why a condition does not hold; none where it does.
pub fn unmet_message(conditions: &[Condition], kind: ConditionType) -> Option<String> {
    match conditions::find(conditions, kind) {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!("{kind}={} ({}): {}", condition.status, condition.reason, condition.message)),
        None => Some(format!("{kind} is not known yet")),
    }
}

/// Writes statuses, and knows which copies of an object are older than its own last write.
pub struct Statuses {
    client: Client,
    metrics: Arc<Metrics>,
    written: Mutex<HashMap<String, u64>>,
}

impl Statuses {
    /// Makes a writer.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics, written: Mutex::default() }
    }

    /// Replaces the status of `object` where `status` differs from the one that it has, and returns what is
    /// stored now; none where nothing was written.
    ///
    /// # Errors
    /// A conflict where somebody else wrote since `object` was read: read again, and decide again.
    pub async fn replace<K>(&self, object: &K, status: K::Status) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + HasStatus
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
        K::Status: PartialEq,
    {
        if object.status() == Some(&status) {
            return Ok(None);
        }
        let mut new = object.clone();
        *new.status_mut() = Some(status);
        let namespace = object.namespace().unwrap_or_default();
        let what = format!("write the status of {} {namespace}/{}", K::kind(&()), object.name_any());
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        self.metrics.count_write(&K::kind(&()), "status");
        let stored =
            api.replace_status(&object.name_any(), &owned::post_params(), &new).await.map_err(Error::api(what))?;
        self.remember(stored.meta().uid.as_deref(), stored.meta().resource_version.as_deref());
        Ok(Some(stored))
    }

    /// Whether this copy is older than what this process wrote last: its change is on the way, so wait for it.
    pub fn is_stale<K: Resource>(&self, object: &K) -> bool {
        let (Some(uid), Some(version)) = (&object.meta().uid, version(object.meta().resource_version.as_deref()))
        else {
            return false;
        };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match written.get(uid) {
            Some(last) if version < *last => true,
            Some(_) => {
                written.remove(uid);
                false
            }
            None => false,
        }
    }

    fn remember(&self, uid: Option<&str>, resource_version: Option<&str>) {
        let (Some(uid), Some(version)) = (uid, version(resource_version)) else { return };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MAX_OBJECTS {
            written.clear();
        }
        written.insert(uid.to_owned(), version);
    }
}

/// Versions of one kind are comparable numbers (KEP-5504); one that is not a number is simply not compared.
pub(crate) fn version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}
