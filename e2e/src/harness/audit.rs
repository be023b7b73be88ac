//! The requests of the operator, and those of impersonated users, from the audit log of the API server. Only the local cluster has one.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::{command, operator};

/// A request of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedRequest {
    /// The time of the response.
    pub at: Timestamp,
    /// The verb: `get`, `create` and so on.
    pub verb: String,
    /// The plural name of the resource, with the subresource if there is one: `skills/status`.
    pub resource: String,
    /// The object's namespace. None for an object of cluster scope, and for a request across all namespaces.
    pub namespace: Option<String>,
    /// The object's name, or an empty string.
    pub name: String,
    /// The HTTP status of the response.
    pub code: u16,
}

/// A user whom the sender of a request has impersonated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedUser {
    /// The name of the sender.
    pub by: String,
    /// The name of the user.
    pub name: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

impl AuditedRequest {
    /// Returns whether the request is about the pod of a probe, which belongs to a Skill and not to a Job.
    pub fn is_of_probe(&self) -> bool {
        self.resource == "pods" && self.name.contains("-probe-")
    }

    fn writes(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// Returns all writes of the operator in a namespace except Events, the oldest first.
pub fn operator_writes(namespace: &str) -> Vec<AuditedRequest> {
    let mut writes = operator_requests(namespace);
    writes.retain(|request| request.writes() && request.resource != "events");
    writes
}

/// Returns the number of Events that the operator wrote in a namespace.
pub fn operator_events(namespace: &str) -> usize {
    operator_requests(namespace).iter().filter(|request| request.writes() && request.resource == "events").count()
}

/// Waits until the operator has written nothing in a namespace for the time `quiet` since the call, and returns the writes so far.
///
/// Panics if the operator still writes after `timeout`.
pub async fn until_quiet(namespace: &str, quiet: Duration, timeout: Duration) -> Vec<AuditedRequest> {
    let started = Timestamp::now();
    loop {
        let writes = operator_writes(namespace);
        let last = writes.last().map_or(started, |write| write.at.max(started));
        let since = Duration::try_from(Timestamp::now().duration_since(last)).unwrap_or_default();
        let Some(left) = quiet.checked_sub(since).filter(|left| !left.is_zero()) else { return writes };
        let waited = Duration::try_from(Timestamp::now().duration_since(started)).unwrap_or_default();
        assert!(waited < timeout, "the operator still writes in {namespace} after {waited:?}: {}", list(&writes));
        tokio::time::sleep(left).await;
    }
}

/// Formats requests, one on each line.
pub fn list(requests: &[AuditedRequest]) -> String {
    let lines = requests.iter().map(|AuditedRequest { at, verb, resource, name, code, .. }| {
        format!("\n  {at} {verb} {resource} {name} ({code})")
    });
    lines.collect()
}

/// Returns all requests of the operator in a namespace, the oldest first. Omits dry runs, and watches across all
/// namespaces.
pub fn operator_requests(namespace: &str) -> Vec<AuditedRequest> {
    let mut requests = operator_requests_with(namespace);
    requests.retain(|request| request.namespace.as_deref() == Some(namespace));
    requests
}

/// Returns all requests of the operator whose line in the log contains a text, such as the name of its pod or of an object, the oldest
/// first. Omits dry runs.
pub fn operator_requests_with(text: &str) -> Vec<AuditedRequest> {
    let user = format!("system:serviceaccount:{}:", operator::NAMESPACE);
    let mine = parsed_lines(|line| line.contains(text) && line.contains(&user));
    let mut requests: Vec<AuditedRequest> = mine.filter_map(|line| line.into_request(&user)).collect();
    requests.sort_by_key(|request| request.at);
    requests
}

/// Returns the impersonated users who have created objects of a resource in a namespace.
pub fn impersonated_creators(namespace: &str, resource: &str) -> Vec<ImpersonatedUser> {
    let is_creation = |line: &Line| {
        let of_object =
            |object: &ObjectRef| object.resource == resource && object.namespace.as_deref() == Some(namespace);
        let is_success = line.response_status.as_ref().is_some_and(|status| status.code == 201);
        line.verb == "create" && is_success && line.object_ref.as_ref().is_some_and(of_object)
    };
    let lines = parsed_lines(|line| line.contains(namespace) && line.contains("impersonatedUser"));
    let creators = lines.filter(is_creation).filter_map(|line| {
        let User { username: name, groups } = line.impersonated_user?;
        Some(ImpersonatedUser { by: line.user.username, name, groups })
    });
    creators.collect()
}

/// Returns the lines of the log with a text that `is_wanted`. Only these are parsed. The last line may be incomplete.
fn parsed_lines(is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = Line> {
    let path = PathBuf::from(command::run(&mut command::script("e2e/cluster/cluster", &["audit-log"])));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    lines.filter(move |line| is_wanted(line)).filter_map(|line| serde_json::from_str(&line).ok())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    impersonated_user: Option<User>,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: u16,
}

impl Line {
    fn into_request(self, user: &str) -> Option<AuditedRequest> {
        let object = self.object_ref?;
        if self.request_uri.contains("dryRun=All") {
            return None;
        }
        if !self.user.username.starts_with(user) {
            return None;
        }
        let resource =
            object.subresource.map_or_else(|| object.resource.clone(), |part| format!("{}/{part}", object.resource));
        let code = self.response_status.map_or(0, |status| status.code);
        Some(AuditedRequest {
            at: self.stage_timestamp,
            verb: self.verb,
            resource,
            namespace: object.namespace,
            name: object.name.unwrap_or_default(),
            code,
        })
    }
}
