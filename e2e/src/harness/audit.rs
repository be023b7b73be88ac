//! What the operator asked for and wrote, by the API server's audit log. The local cluster has one.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::{command, operator};

/// One request by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it was answered.
    pub at: Timestamp,
    /// What was to be done: `get`, `create` and so on.
    pub verb: String,
    /// The kind in the plural, with the subresource if there is one: `skills/status`.
    pub resource: String,
    /// The object's name, where the request had one.
    pub name: String,
    /// The HTTP status that answered it.
    pub code: u16,
}

impl Asked {
    fn writes(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// Every write by the operator in a namespace, oldest first; Leases, token reviews and Events apart.
pub fn own_writes(namespace: &str) -> Vec<Asked> {
    let mut writes = own_requests(namespace);
    writes.retain(|asked| asked.writes() && asked.resource != "events");
    writes
}

/// How many Events the operator wrote in a namespace.
pub fn own_events(namespace: &str) -> usize {
    own_requests(namespace).iter().filter(|asked| asked.writes() && asked.resource == "events").count()
}

/// Waits until the operator has written nothing in a namespace for as long as `quiet`; gives the writes so far.
///
/// Fails if it still writes after `patience`. What is waited for here is a time by definition.
pub async fn until_quiet(namespace: &str, quiet: Duration, patience: Duration) -> Vec<Asked> {
    let started = Timestamp::now();
    loop {
        let writes = own_writes(namespace);
        let last = writes.last().map_or(started, |write| write.at);
        let since = Duration::try_from(Timestamp::now().duration_since(last)).unwrap_or_default();
        let Some(left) = quiet.checked_sub(since).filter(|left| !left.is_zero()) else { return writes };
        let waited = Duration::try_from(Timestamp::now().duration_since(started)).unwrap_or_default();
        assert!(waited < patience, "the operator still writes in {namespace} after {waited:?}: {}", list(&writes));
        tokio::time::sleep(left).await;
    }
}

/// Requests as people read them, one a line.
pub fn list(requests: &[Asked]) -> String {
    let lines = requests
        .iter()
        .map(|Asked { at, verb, resource, name, code }| format!("\n  {at} {verb} {resource} {name} ({code})"));
    lines.collect()
}

/// Every request by the operator in a namespace, oldest first. What it watches in all namespaces is in none, and what it
/// only tried (a dry run) is left out.
pub fn own_requests(namespace: &str) -> Vec<Asked> {
    let user = format!("system:serviceaccount:{}:", operator::NAMESPACE);
    let path = PathBuf::from(command::run(&mut command::script("e2e/cluster/cluster", &["audit-log"])));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    // Most lines are of others: only those that may be meant are parsed. The last one may be half written.
    let mine = lines.filter(|line| line.contains(namespace) && line.contains(&user));
    let mut requests: Vec<Asked> =
        mine.filter_map(|line| serde_json::from_str::<Line>(&line).ok()?.asked(namespace, &user)).collect();
    requests.sort_by_key(|asked| asked.at);
    requests
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    username: String,
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
    fn asked(self, namespace: &str, user: &str) -> Option<Asked> {
        let of = self.object_ref?;
        if self.request_uri.contains("dryRun=All") {
            return None;
        }
        if !self.user.username.starts_with(user) || of.namespace.as_deref() != Some(namespace) {
            return None;
        }
        let resource = of.subresource.map_or_else(|| of.resource.clone(), |part| format!("{}/{part}", of.resource));
        let code = self.response_status.map_or(0, |status| status.code);
        Some(Asked { at: self.stage_timestamp, verb: self.verb, resource, name: of.name.unwrap_or_default(), code })
    }
}
