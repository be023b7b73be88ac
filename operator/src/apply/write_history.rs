//! The last writes of the applier: what it applied, what the API server answered, and what it deleted.

use super::subset::without_server_fields;
use crate::status::parse_resource_version;
use bloomery_crds::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of remembered objects. At the limit, all are forgotten. Then one write that changes nothing may be
/// repeated for each of them.
const MAX_OBJECTS: usize = 8192;

/// The last writes of the applier, by UID.
#[derive(Default)]
pub(super) struct WriteHistory(Mutex<HashMap<String, Entry>>);

enum Entry {
    /// The object was applied: the applied state, the answer of the API server, and its resource version.
    Applied { version: Option<u64>, wanted: Digest, answer: Digest },
    /// The deletion of the object was requested.
    Deleted,
}

impl WriteHistory {
    /// Records the applied state of an object, and the object as the API server returned it.
    pub(super) fn remember(&self, metadata: &ObjectMeta, wanted: &Value, answer: Value) {
        let Some(uid) = metadata.uid.clone() else { return };
        let entry = Entry::Applied {
            version: parse_resource_version(metadata.resource_version.as_deref()),
            wanted: fingerprint(wanted.clone()),
            answer: fingerprint(answer),
        };
        self.insert(uid, entry);
    }

    /// Returns whether an answer is recorded for the object.
    pub(super) fn has_answer(&self, uid: Option<&str>) -> bool {
        uid.is_some_and(|uid| matches!(self.entries().get(uid), Some(Entry::Applied { .. })))
    }

    /// Returns whether this resource version is older than the last write to the object.
    pub(super) fn is_older(&self, uid: &str, resource_version: Option<&str>) -> bool {
        let entries = self.entries();
        match (entries.get(uid), parse_resource_version(resource_version)) {
            (Some(Entry::Applied { version: Some(written), .. }), Some(seen)) => seen < *written,
            _ => false,
        }
    }

    /// Returns whether `wanted` is what was applied last, and `live` equals the API server's answer to that apply.
    pub(super) fn is_answer(&self, uid: &str, wanted: &Value, live: &Value) -> bool {
        match self.entries().get(uid) {
            Some(Entry::Applied { wanted: applied, answer, .. }) => {
                *applied == fingerprint(wanted.clone()) && *answer == fingerprint(live.clone())
            }
            Some(Entry::Deleted) | None => false,
        }
    }

    /// Records the deletion of an object. Returns false if it was recorded already.
    pub(super) fn record_deletion(&self, uid: &str) -> bool {
        !matches!(self.insert(uid.to_owned(), Entry::Deleted), Some(Entry::Deleted))
    }

    /// Removes an object from the record.
    pub(super) fn forget(&self, uid: &str) {
        self.entries().remove(uid);
    }

    fn insert(&self, uid: String, entry: Entry) -> Option<Entry> {
        let mut entries = self.entries();
        if entries.len() >= MAX_OBJECTS {
            entries.clear();
        }
        entries.insert(uid, entry)
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The digest of an object without the fields that the API server maintains, and without the UID of a precondition.
fn fingerprint(object: Value) -> Digest {
    let mut object = without_server_fields(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("uid");
    }
    Digest::of_value(&object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(version: &str) -> ObjectMeta {
        ObjectMeta { uid: Some("u-1".into()), resource_version: Some(version.into()), ..ObjectMeta::default() }
    }

    #[test]
    fn an_answer_matches_until_the_object_or_the_wanted_state_changes() {
        let history = WriteHistory::default();
        let wanted = json!({"metadata": {"name": "a", "uid": "u-1"}, "spec": {"mode": "0644"}});
        let answer = json!({"metadata": {"name": "a", "resourceVersion": "5"}, "spec": {"mode": 420}});
        history.remember(&metadata("5"), &wanted, answer.clone());
        let again = json!({"metadata": {"name": "a"}, "spec": {"mode": "0644"}});
        let later = json!({"metadata": {"name": "a", "resourceVersion": "9"}, "spec": {"mode": 420}, "status": {}});
        assert!(history.is_answer("u-1", &again, &later));
        assert!(!history.is_answer("u-1", &again, &json!({"metadata": {"name": "a"}, "spec": {"mode": 421}})));
        assert!(!history.is_answer("u-1", &json!({"metadata": {"name": "a"}}), &answer));
        assert!(!history.is_answer("u-2", &again, &later));
    }

    #[test]
    fn an_older_resource_version_than_the_last_write_is_detected() {
        let history = WriteHistory::default();
        history.remember(&metadata("50"), &json!({}), json!({}));
        assert!(history.is_older("u-1", Some("9")));
        assert!(!history.is_older("u-1", Some("50")));
        assert!(!history.is_older("u-2", Some("9")));
    }

    #[test]
    fn a_deletion_is_recorded_once() {
        let history = WriteHistory::default();
        assert!(history.record_deletion("u-1"));
        assert!(!history.record_deletion("u-1"));
        history.forget("u-1");
        assert!(history.record_deletion("u-1"));
    }
}
