//! The objects of the API server, and the writes that change them.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::access::Access;
use super::admission::{Admission, Defaults, Write, refusal};
use super::target::Target;

/// The creation time of all objects that a POST creates.
const CREATED: &str = "2027-01-15T08:00:00Z";

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub version: u64,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: &'static str,
    pub path: String,
    pub object: Value,
}

#[derive(Default)]
pub(super) struct State {
    /// The stored objects by path.
    pub objects: BTreeMap<String, Value>,
    pub history: Vec<Event>,
    pub access: Access,
    pub admission: Option<Admission>,
    pub defaults: Option<Defaults>,
    pub forgotten_group: Option<String>,
    /// The logs by the beginning of the pod's name.
    pub logs: BTreeMap<String, String>,
    /// The writes of other clients, by path.
    pub meanwhile: Vec<(String, Value)>,
    pub loses_response: bool,
    pub are_watches_silent: bool,
    pub token_review: Value,
    pub token_reviews: u32,
    pub requests: Vec<String>,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub patches: Vec<Value>,
}

/// The status code and the body of a response.
pub(super) type Answer = (StatusCode, Value);

/// A write before it is checked.
pub(super) struct Wanted<'a> {
    pub user: &'a str,
    pub target: &'a Target,
    pub body: Value,
    pub is_dry_run: bool,
}

impl State {
    /// Returns the version of the latest change.
    pub fn version(&self) -> u64 {
        self.history.last().map_or(0, |event| event.version)
    }

    pub fn find(&self, path: &str) -> Option<Value> {
        self.objects.get(path).cloned()
    }

    /// Stores an object with a new version. Returns the stored object.
    pub fn put(&mut self, path: &str, mut object: Value) -> Value {
        let version = self.version() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let kind = if self.objects.contains_key(path) { "MODIFIED" } else { "ADDED" };
        self.history.push(Event { version, kind, path: path.to_owned(), object: object.clone() });
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    pub fn remove(&mut self, path: &str) -> Option<Value> {
        let object = self.objects.remove(path)?;
        let version = self.version() + 1;
        self.history.push(Event { version, kind: "DELETED", path: path.to_owned(), object: object.clone() });
        Some(object)
    }

    pub fn create(&mut self, wanted: &Wanted<'_>) -> Answer {
        let mut object = wanted.body.clone();
        let metadata = &object["metadata"];
        let generated = || metadata["generateName"].as_str().map(|prefix| format!("{prefix}x1"));
        let Some(name) = metadata["name"].as_str().map(str::to_owned).or_else(generated) else {
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", "metadata.name: Required value");
        };
        let path = wanted.target.object(&name);
        self.record(wanted, "create", &path);
        if let Err(refusal) = self.check(wanted, "create", &path) {
            return refusal;
        }
        if self.objects.contains_key(&path) {
            return refused(StatusCode::CONFLICT, "AlreadyExists", "the object already exists");
        }
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(uid(&path));
        object["metadata"]["creationTimestamp"] = json!(CREATED);
        if let Some(defaults) = &self.defaults {
            defaults(&mut object);
        }
        let object = if wanted.is_dry_run { object } else { self.put(&path, object) };
        (StatusCode::CREATED, object)
    }

    /// Replaces the object by the applied one, as if there were only one field manager. A UID and a version in the patch
    /// must be those of the stored object, if there is one.
    pub fn apply(&mut self, wanted: &Wanted<'_>, path: &str) -> Answer {
        self.record(wanted, "apply", path);
        self.overtake(path);
        if let Err(refusal) = self.check(wanted, "apply", path) {
            return refusal;
        }
        let stored = self.objects.get(path).map(|stored| stored["metadata"].clone());
        if let Some(conflict) = conflict(&wanted.body["metadata"], stored.as_ref()) {
            return conflict;
        }
        let version = self.version() + 1;
        let created = format!("2027-01-15T08:{:02}:{:02}Z", version / 60, version % 60);
        let kept = stored.unwrap_or_else(|| json!({"uid": uid(path), "creationTimestamp": created}));
        let mut object = wanted.body.clone();
        object["metadata"]["uid"] = kept["uid"].clone();
        object["metadata"]["creationTimestamp"] = kept["creationTimestamp"].clone();
        (StatusCode::OK, self.put(path, object))
    }

    pub fn patch(&mut self, wanted: &Wanted<'_>, path: &str) -> Answer {
        self.patches.push(wanted.body.clone());
        self.record(wanted, "patch", path);
        self.overtake(path);
        let Some(mut object) = self.find(path) else { return not_found(wanted.target) };
        if let Some(conflict) = conflict(&wanted.body["metadata"], Some(&object["metadata"])) {
            return conflict;
        }
        if let Err(refusal) = self.check(wanted, "patch", path) {
            return refusal;
        }
        merge(&mut object, &wanted.body);
        let object = self.put(path, object);
        if std::mem::take(&mut self.loses_response) {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the response was lost");
        }
        (StatusCode::OK, object)
    }

    /// Replaces the whole object or only its status.
    pub fn replace(&mut self, wanted: &Wanted<'_>, path: &str) -> Answer {
        let is_status = wanted.target.subresource.as_deref() == Some("status");
        let kind = if is_status { "status" } else { "replace" };
        self.record(wanted, kind, path);
        self.overtake(path);
        if let Err(refusal) = self.check(wanted, kind, path) {
            return refusal;
        }
        let Some(stored) = self.find(path) else { return not_found(wanted.target) };
        if stored["metadata"]["resourceVersion"] != wanted.body["metadata"]["resourceVersion"] {
            return modified();
        }
        let object = if is_status {
            let mut object = stored;
            object["status"] = wanted.body["status"].clone();
            object
        } else {
            wanted.body.clone()
        };
        (StatusCode::OK, self.put(path, object))
    }

    pub fn delete(&mut self, wanted: &Wanted<'_>, path: &str) -> Answer {
        let grace = wanted.body["gracePeriodSeconds"].as_u64();
        let within = grace.map(|seconds| format!(" within {seconds} s")).unwrap_or_default();
        self.record(wanted, "delete", &format!("{path}{within}"));
        self.overtake(path);
        if let Err(refusal) = self.check(wanted, "delete", path) {
            return refusal;
        }
        let Some(stored) = self.find(path) else { return not_found(wanted.target) };
        if let Some(conflict) = conflict(&wanted.body["preconditions"], Some(&stored["metadata"])) {
            return conflict;
        }
        self.remove(path);
        (StatusCode::OK, stored)
    }

    fn record(&mut self, wanted: &Wanted<'_>, kind: &str, path: &str) {
        if !wanted.is_dry_run {
            self.writes.push(format!("{kind} {path}"));
        }
    }

    /// Performs the prepared write of another client to this path, if there is one.
    fn overtake(&mut self, path: &str) {
        if let Some(at) = self.meanwhile.iter().position(|(waiting, _)| waiting == path) {
            let (path, object) = self.meanwhile.remove(at);
            self.put(&path, object);
        }
    }

    fn check(&self, wanted: &Wanted<'_>, kind: &str, path: &str) -> Result<(), Answer> {
        let Some(admission) = &self.admission else { return Ok(()) };
        let write = Write {
            user: wanted.user,
            kind,
            path,
            body: &wanted.body,
            stored: self.objects.get(path),
            is_dry_run: wanted.is_dry_run,
            access: &self.access,
        };
        admission(&write).map_err(|status| {
            let code = status["code"].as_u64().and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
            (code.unwrap_or(StatusCode::FORBIDDEN), status)
        })
    }
}

pub(super) fn refused(code: StatusCode, reason: &str, message: &str) -> Answer {
    (code, refusal(code, reason, message))
}

pub(super) fn not_found(target: &Target) -> Answer {
    refused(StatusCode::NOT_FOUND, "NotFound", &format!("{} not found", target.named()))
}

fn modified() -> Answer {
    refused(StatusCode::CONFLICT, "Conflict", "the object has been modified")
}

/// Refuses a write whose UID or version is not that of the stored object. A version is not
/// checked if no object is stored.
fn conflict(expected: &Value, stored: Option<&Value>) -> Option<Answer> {
    let differs =
        |field: &str| !expected[field].is_null() && stored.map(|stored| &stored[field]) != Some(&expected[field]);
    (differs("uid") || (stored.is_some() && differs("resourceVersion"))).then(modified)
}

/// Returns the UID of an object that is created at a path.
fn uid(path: &str) -> String {
    format!("uid of {path}")
}

/// Applies a JSON merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        patch.clone_into(target);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(field);
            }
        } else {
            merge(&mut target[field], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_sets_replaces_and_removes_fields() {
        let mut object = json!({"spec": {"goal": "refund", "replies": [1, 2], "limits": {"steps": 3}}});
        merge(&mut object, &json!({"spec": {"cancel": true, "replies": [3], "limits": {"steps": null}}}));
        let expected = json!({"spec": {"goal": "refund", "replies": [3], "limits": {}, "cancel": true}});
        assert_eq!(object, expected);
    }
}
