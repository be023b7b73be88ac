//! The objects of the API server, and the writes that change them.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::access::Access;
use super::admission::{Admission, Defaults, Write, refusal};
use super::target::Target;

/// The creation time of each object that a POST creates.
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
    /// The API group that is answered as not installed.
    pub uninstalled_group: Option<String>,
    /// The logs by the beginning of the pod's name.
    pub logs: BTreeMap<String, String>,
    /// The prepared writes of other clients: a path and an object.
    pub meanwhile: Vec<(String, Value)>,
    pub loses_response: bool,
    pub are_watches_silent: bool,
    /// The users whose credentials are not accepted.
    pub expired_users: BTreeSet<String>,
    pub token_review: Value,
    /// The statuses of the reviews of single tokens.
    pub token_reviews_by_token: BTreeMap<String, Value>,
    pub token_reviews: u32,
    pub requests: Vec<String>,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub patches: Vec<Value>,
}

/// The status code and the body of a response.
pub(super) type Answer = (StatusCode, Value);

/// A write that a client requests.
pub(super) struct WriteRequest<'a> {
    pub user: &'a str,
    pub target: &'a Target,
    pub body: Value,
    pub is_dry_run: bool,
    /// True if lists of a patch are merged by their keys.
    pub is_strategic: bool,
}

impl WriteRequest<'_> {
    /// Returns `status` for a write of the status, `kind` for other writes.
    fn kind_of_write(&self, kind: &'static str) -> &'static str {
        if self.target.subresource.as_deref() == Some("status") { "status" } else { kind }
    }
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

    pub fn create(&mut self, request: &WriteRequest<'_>) -> Answer {
        let mut object = request.body.clone();
        let metadata = &object["metadata"];
        // Each generated name has the same suffix, so tests know the name.
        let generated = || metadata["generateName"].as_str().map(|prefix| format!("{prefix}x1"));
        let Some(name) = metadata["name"].as_str().map(str::to_owned).or_else(generated) else {
            return refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", "metadata.name: Required value");
        };
        let path = request.target.object(&name);
        self.write_as_other_client(&path);
        self.record(request, "create", &path);
        if let Err(refusal) = self.check(request, "create", &path) {
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
        (StatusCode::CREATED, self.store(request, &path, object))
    }

    /// Stores a written object, unless the request is a dry run.
    fn store(&mut self, request: &WriteRequest<'_>, path: &str, object: Value) -> Value {
        if request.is_dry_run { object } else { self.put(path, object) }
    }

    /// Replaces the object by the applied one, as if one field manager owned all fields. If the applied object has a UID or a
    /// version, it must be that of the stored object.
    pub fn apply(&mut self, request: &WriteRequest<'_>, path: &str) -> Answer {
        self.record(request, "apply", path);
        self.write_as_other_client(path);
        if let Err(refusal) = self.check(request, "apply", path) {
            return refusal;
        }
        let stored = self.objects.get(path).map(|stored| stored["metadata"].clone());
        if let Some(conflict) = conflict(&request.body["metadata"], stored.as_ref()) {
            return conflict;
        }
        let version = self.version() + 1;
        let created = format!("2027-01-15T08:{:02}:{:02}Z", version / 60, version % 60);
        let kept = stored.unwrap_or_else(|| json!({"uid": uid(path), "creationTimestamp": created}));
        let mut object = request.body.clone();
        object["metadata"]["uid"] = kept["uid"].clone();
        object["metadata"]["creationTimestamp"] = kept["creationTimestamp"].clone();
        (StatusCode::OK, self.store(request, path, object))
    }

    pub fn patch(&mut self, request: &WriteRequest<'_>, path: &str) -> Answer {
        let kind = request.kind_of_write("patch");
        if kind == "patch" {
            self.patches.push(request.body.clone());
        }
        self.record(request, kind, path);
        self.write_as_other_client(path);
        let Some(mut object) = self.find(path) else { return not_found(request.target) };
        if let Some(conflict) = conflict(&request.body["metadata"], Some(&object["metadata"])) {
            return conflict;
        }
        if let Err(refusal) = self.check(request, kind, path) {
            return refusal;
        }
        merge(&mut object, &request.body, request.is_strategic);
        let object = self.store(request, path, object);
        if std::mem::take(&mut self.loses_response) {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the response was lost");
        }
        (StatusCode::OK, object)
    }

    /// Replaces the whole object or only its status.
    pub fn replace(&mut self, request: &WriteRequest<'_>, path: &str) -> Answer {
        let kind = request.kind_of_write("replace");
        self.record(request, kind, path);
        self.write_as_other_client(path);
        if let Err(refusal) = self.check(request, kind, path) {
            return refusal;
        }
        let Some(stored) = self.find(path) else { return not_found(request.target) };
        if stored["metadata"]["resourceVersion"] != request.body["metadata"]["resourceVersion"] {
            return modified();
        }
        let object = if kind == "status" {
            let mut object = stored;
            object["status"] = request.body["status"].clone();
            object
        } else {
            request.body.clone()
        };
        (StatusCode::OK, self.store(request, path, object))
    }

    pub fn delete(&mut self, request: &WriteRequest<'_>, path: &str) -> Answer {
        let grace = request.body["gracePeriodSeconds"].as_u64();
        let grace_suffix = grace.map(|seconds| format!(" within {seconds} s")).unwrap_or_default();
        self.record(request, "delete", &format!("{path}{grace_suffix}"));
        self.write_as_other_client(path);
        if let Err(refusal) = self.check(request, "delete", path) {
            return refusal;
        }
        let Some(stored) = self.find(path) else { return not_found(request.target) };
        if let Some(conflict) = conflict(&request.body["preconditions"], Some(&stored["metadata"])) {
            return conflict;
        }
        if !request.is_dry_run {
            self.remove(path);
        }
        (StatusCode::OK, stored)
    }

    fn record(&mut self, request: &WriteRequest<'_>, kind: &str, path: &str) {
        if !request.is_dry_run {
            self.writes.push(format!("{kind} {path}"));
        }
    }

    /// Performs the prepared write of another client to this path, if there is one.
    fn write_as_other_client(&mut self, path: &str) {
        if let Some(at) = self.meanwhile.iter().position(|(waiting, _)| waiting == path) {
            let (path, object) = self.meanwhile.remove(at);
            self.put(&path, object);
        }
    }

    fn check(&self, request: &WriteRequest<'_>, kind: &str, path: &str) -> Result<(), Answer> {
        let Some(admission) = &self.admission else { return Ok(()) };
        let write = Write {
            user: request.user,
            kind,
            path,
            body: &request.body,
            stored: self.objects.get(path),
            is_dry_run: request.is_dry_run,
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
    refused(StatusCode::NOT_FOUND, "NotFound", &format!("{} not found", target.display_name()))
}

fn modified() -> Answer {
    refused(StatusCode::CONFLICT, "Conflict", "the object has been modified")
}

/// Returns a conflict if the expected UID or version is not that of the stored object. Does not check the version if no object
/// is stored.
fn conflict(expected: &Value, stored: Option<&Value>) -> Option<Answer> {
    let differs =
        |field: &str| !expected[field].is_null() && stored.map(|stored| &stored[field]) != Some(&expected[field]);
    (differs("uid") || (stored.is_some() && differs("resourceVersion"))).then(modified)
}

/// Returns the UID of an object that is created at a path.
fn uid(path: &str) -> String {
    format!("uid of {path}")
}

/// Applies a JSON merge patch (RFC 7396). A strategic one merges lists of objects by their keys.
fn merge(target: &mut Value, patch: &Value, is_strategic: bool) {
    if let (true, Some(target), Some(patches)) = (is_strategic, target.as_array_mut(), patch.as_array()) {
        merge_items(target, patches);
        return;
    }
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
            merge(&mut target[field], value, is_strategic);
        }
    }
}

/// Merges the items of a list by their `name`, or else by their `port`.
fn merge_items(target: &mut Vec<Value>, patches: &[Value]) {
    for patch in patches {
        let key = if patch["name"].is_null() { "port" } else { "name" };
        let position = target.iter().position(|item| item[key] == patch[key]);
        match (position, patch["$patch"] == "delete") {
            (Some(position), true) => drop(target.remove(position)),
            (Some(position), false) => merge(&mut target[position], patch, true),
            (None, true) => {}
            (None, false) => target.push(patch.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_sets_replaces_and_removes_fields() {
        let mut object = json!({"spec": {"goal": "refund", "replies": [1, 2], "limits": {"steps": 3}}});
        merge(&mut object, &json!({"spec": {"cancel": true, "replies": [3], "limits": {"steps": null}}}), false);
        let expected = json!({"spec": {"goal": "refund", "replies": [3], "limits": {}, "cancel": true}});
        assert_eq!(object, expected);
    }

    #[test]
    fn a_strategic_merge_patch_merges_lists_by_their_keys() {
        let mut object = json!({"containers": [{"name": "a", "env": [{"name": "x"}, {"name": "y"}]}, {"name": "b"}]});
        let patch = json!({"containers": [{"name": "a", "env": [{"name": "x", "$patch": "delete"}]}]});
        merge(&mut object, &patch, true);
        assert_eq!(object, json!({"containers": [{"name": "a", "env": [{"name": "y"}]}, {"name": "b"}]}));
    }

    #[test]
    fn a_dry_run_stores_nothing() {
        let path = "/api/v1/namespaces/a/configmaps/x";
        let target = Target::parse(path).unwrap();
        let mut state = State::default();
        state.put(path, json!({"metadata": {"name": "x"}, "data": {"k": "v"}}));
        let stored = state.find(path).unwrap();
        let mut body = stored.clone();
        body["data"]["k"] = json!("w");
        let request = WriteRequest { user: "u", target: &target, body, is_dry_run: true, is_strategic: false };
        for write in [State::replace, State::patch, State::apply] {
            let (code, object) = write(&mut state, &request, path);
            assert_eq!((code, &object["data"]["k"]), (StatusCode::OK, &json!("w")));
        }
        let delete = WriteRequest { body: json!({}), ..request };
        assert_eq!(state.delete(&delete, path).0, StatusCode::OK);
        assert_eq!((state.find(path), state.writes.len(), state.history.len()), (Some(stored), 0, 1));
    }
}
