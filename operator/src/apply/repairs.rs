//! The removals of what other writers added, and their bound.

use super::exclusive::Additions;
use super::{Applier, ApplyResult, KnownObject, Object, Target, add_precondition, json, refusal_or_error};
use crate::error::Error;
use crate::owned;
use bloomery_crds::Digest;
use kube::api::Patch;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How often the same additions are removed from an object. A writer that adds them again each time would otherwise keep
/// the operator busy.
const MAX_REPAIRS: u32 = 3;

/// The maximum number of remembered objects. At the limit, all are forgotten.
const MAX_OBJECTS: usize = 8192;

/// How often the last additions to an object were removed, by its UID.
#[derive(Default)]
pub(super) struct Repairs(Mutex<HashMap<String, (Digest, u32)>>);

impl Repairs {
    /// Records a removal with this patch. Returns false if the same one was tried often enough.
    fn record(&self, uid: &str, patch: &Value) -> bool {
        let mut repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if repairs.len() >= MAX_OBJECTS {
            repairs.clear();
        }
        let patch = Digest::of_value(patch);
        let (last, count) = repairs.entry(uid.to_owned()).or_insert_with(|| (patch.clone(), 0));
        if *last != patch {
            (*last, *count) = (patch, 0);
        }
        *count = count.saturating_add(1);
        *count <= MAX_REPAIRS
    }
}

impl Applier {
    /// Removes what other writers added to the exclusive parts of a known object. Returns the object without it, or the result
    /// if the API server refuses the removal. Returns the object unchanged if the same additions were removed often enough.
    ///
    /// # Errors
    /// Returns a conflict if the object has changed since it was read.
    pub(super) async fn remove<K: Object>(
        &self,
        additions: Additions,
        target: &Target,
        known: KnownObject,
    ) -> Result<Result<KnownObject, ApplyResult<K>>, Error> {
        let Additions { mut patch, paths } = additions;
        let (Some(uid), Some(version)) = (&known.metadata.uid, &known.metadata.resource_version) else {
            return Ok(Ok(known));
        };
        if !self.repairs.record(uid, &patch) {
            return Ok(Ok(known));
        }
        tracing::info!(object = target.what, ?paths, "removing what another writer added");
        if let Some(patch) = patch.as_object_mut() {
            patch.insert("metadata".to_owned(), Value::Object(serde_json::Map::new()));
        }
        add_precondition(&mut patch, "uid", uid);
        add_precondition(&mut patch, "resourceVersion", version);
        self.metrics.count_write(&K::kind(&()), "patch");
        let api = self.api::<K>(&target.namespace);
        let answer = api.patch(&target.name, &owned::patch_params(), &Patch::Strategic(&patch)).await;
        match answer.map_err(Error::api(format!("patch {}", target.what))) {
            Ok(answer) => {
                let value = json(&answer, &target.what)?;
                Ok(Ok(KnownObject { metadata: answer.meta().clone(), value, metadata_only: false }))
            }
            Err(error) => refusal_or_error(error).map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_additions_are_removed_a_bounded_number_of_times() {
        let repairs = Repairs::default();
        let (one, other) = (json!({"spec": 1}), json!({"spec": 2}));
        for _ in 0..MAX_REPAIRS {
            assert!(repairs.record("u-1", &one));
        }
        assert!(!repairs.record("u-1", &one));
        assert!(repairs.record("u-2", &one), "another object");
        assert!(repairs.record("u-1", &other), "other additions");
    }
}
