//! An API server in memory, as far as decisions need one: Approvals with versions, who may what, and what checks
//! decisions. Whoever asks is whom they impersonate.

use crate::office;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

const APPROVALS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals";
const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/";

/// The API server. Clones are the same one.
#[derive(Clone, Default)]
pub struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    approvals: BTreeMap<String, Value>,
    /// The UIDs of Jobs, by name.
    jobs: BTreeMap<String, String>,
    /// Whole Jobs, by name.
    whole: BTreeMap<String, Value>,
    version: u64,
    /// Users, and what they may: `verb resource`, or `verb resource/name`.
    rights: Vec<(String, String)>,
    requests: Vec<String>,
    patches: Vec<Value>,
    meanwhile: Option<Value>,
    answers_lost: u32,
    is_bare: bool,
}

impl Api {
    /// Serves it; returns its address.
    pub async fn serve(&self) -> String {
        office::serve(axum::Router::new().fallback(answer).with_state(self.clone())).await
    }

    /// Stores an Approval, and the Job that it is of, where there is none of that name.
    pub fn put(&self, mut approval: Value) {
        let mut state = self.state();
        state.version += 1;
        approval["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let name = approval["metadata"]["name"].as_str().unwrap().to_owned();
        let of = |field: &str| approval["spec"][field].as_str().unwrap().to_owned();
        state.jobs.entry(of("job")).or_insert_with(|| of("jobUid"));
        state.approvals.insert(name, approval);
    }

    /// Stores a Job as it is read.
    pub fn put_job(&self, job: Value) {
        let name = job["metadata"]["name"].as_str().unwrap().to_owned();
        self.state().whole.insert(name, job);
    }

    /// Deletes a Job and leaves its Approvals; makes another one of that name, where there is to be one.
    pub fn orphans(&self, job: &str, another: Option<&str>) {
        let mut state = self.state();
        state.jobs.remove(job);
        state.jobs.extend(another.map(|uid| (job.to_owned(), uid.to_owned())));
    }

    /// The stored one.
    pub fn approval(&self, name: &str) -> Value {
        self.state().approvals[name].clone()
    }

    /// Lets a user do something.
    pub fn lets(&self, user: &str, rights: &[&str]) {
        self.state().rights.extend(rights.iter().map(|right| (user.to_owned(), (*right).to_owned())));
    }

    /// Lets somebody else write an Approval just before the next patch.
    pub fn meanwhile(&self, approval: Value) {
        self.state().meanwhile = Some(approval);
    }

    /// Loses the answer to the next patch, which is made.
    pub fn loses_an_answer(&self) {
        self.state().answers_lost = 1;
    }

    /// A cluster without Bloomery.
    pub fn is_bare(&self) {
        self.state().is_bare = true;
    }

    /// What was asked: user, verb and path.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The patches that came.
    pub fn patches(&self) -> Vec<Value> {
        self.state().patches.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

type Answer = (StatusCode, Json<Value>);

async fn answer(Shared(api): Shared<Api>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Answer {
    let header = |name: &str| headers.get(name).map_or("admin", |value| value.to_str().unwrap()).to_owned();
    let (user, accept) = (header("impersonate-user"), header("accept"));
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let overtakes = (method == Method::PATCH).then(|| api.state().meanwhile.take()).flatten();
    if let Some(approval) = overtakes {
        api.put(approval);
    }
    let mut state = api.state();
    state.requests.push(format!("{user} {method} {}", uri.path()));
    match (&method, uri.path().strip_prefix(APPROVALS)) {
        (_, None) if uri.path().ends_with("/selfsubjectreviews") => {
            (StatusCode::CREATED, Json(json!({"metadata": {}, "status": {"userInfo": {"username": user}}})))
        }
        (_, None) if uri.path().ends_with("/selfsubjectaccessreviews") => {
            let asked = &body["spec"]["resourceAttributes"];
            let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
            assert_eq!((text("group"), text("namespace")), ("bloomery.dev".into(), "acme".into()));
            let allowed = state.may(&user, &text("verb"), &text("resource"), &text("name"));
            (StatusCode::CREATED, Json(json!({"metadata": {}, "spec": body["spec"], "status": {"allowed": allowed}})))
        }
        (&Method::GET, None) if uri.path().starts_with(JOBS) => state.job(&user, &uri.path()[JOBS.len()..]),
        (&Method::GET, None) if !uri.path().ends_with("/approvals") => {
            refusal(StatusCode::NOT_FOUND, "NotFound", "there is nothing in other namespaces")
        }
        (&Method::GET, None) => (StatusCode::OK, Json(json!({"metadata": {}, "items": []}))),
        (_, Some(_)) if state.is_bare => {
            refusal(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
        }
        (&Method::GET, Some("")) => state.list(&user, uri.query().unwrap_or_default(), &accept),
        (&Method::GET, Some(name)) => state.read(&user, name.trim_start_matches('/')),
        (&Method::PATCH, Some(name)) => {
            let (status, answer) = state.patch(&user, name.trim_start_matches('/'), &body);
            if std::mem::take(&mut state.answers_lost) > 0 {
                return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the answer was lost");
            }
            (status, answer)
        }
        (_, _) => panic!("{method} {uri} is not expected"),
    }
}

impl State {
    fn may(&self, user: &str, verb: &str, resource: &str, name: &str) -> bool {
        let gives =
            |right: &str| [format!("{verb} {resource}"), format!("{verb} {resource}/{name}")].contains(&right.into());
        user == "admin" || self.rights.iter().any(|(of, right)| of == user && gives(right))
    }

    fn forbids(&self, user: &str, verb: &str, name: &str) -> Option<Answer> {
        let message = format!(
            "approvals.bloomery.dev \"{name}\" is forbidden: User \"{user}\" cannot {verb} resource \"approvals\" in API group \
             \"bloomery.dev\" in the namespace \"acme\""
        );
        let allowed = self.may(user, verb, "approvals", name);
        (!allowed).then(|| refusal(StatusCode::FORBIDDEN, "Forbidden", &message))
    }

    fn job(&self, user: &str, name: &str) -> Answer {
        if !self.may(user, "get", "skilljobs", name) {
            return refusal(StatusCode::FORBIDDEN, "Forbidden", "jobs may not be read");
        }
        if let Some(job) = self.whole.get(name) {
            return (StatusCode::OK, Json(job.clone()));
        }
        match self.jobs.get(name) {
            Some(uid) => (StatusCode::OK, Json(json!({"metadata": {"name": name, "uid": uid}}))),
            None => refusal(StatusCode::NOT_FOUND, "NotFound", "not found"),
        }
    }

    fn list(&self, user: &str, query: &str, accept: &str) -> Answer {
        if let Some(forbidden) = self.forbids(user, "list", "") {
            return forbidden;
        }
        let job = query.split("bloomery.dev%2Fjob%3D").nth(1).map(|rest| rest.split('&').next().unwrap());
        let is_asked =
            |approval: &&Value| job.is_none_or(|job| approval["metadata"]["labels"]["bloomery.dev/job"] == job);
        let number = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
        let (from, most) = (number("continue=").unwrap_or_default(), number("limit=").unwrap_or(usize::MAX));
        let all = self.approvals.values().filter(is_asked);
        let left = all.clone().count().saturating_sub(from.saturating_add(most));
        let next = if left > 0 { (from + most).to_string() } else { String::new() };
        let mut items: Vec<Value> = all.skip(from).take(most).cloned().collect();
        if accept.contains("PartialObjectMetadata") {
            let part = |item: &Value| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": item["metadata"]});
            items = items.iter().map(part).collect();
        }
        (StatusCode::OK, Json(json!({"metadata": {"continue": next}, "items": items})))
    }

    fn read(&self, user: &str, name: &str) -> Answer {
        if let Some(forbidden) = self.forbids(user, "get", name) {
            return forbidden;
        }
        match self.approvals.get(name) {
            Some(approval) => (StatusCode::OK, Json(approval.clone())),
            None => refusal(StatusCode::NOT_FOUND, "NotFound", &format!("approvals.bloomery.dev \"{name}\" not found")),
        }
    }

    /// A merge patch, checked as the cluster checks it: rights, version, the CRD's rule, the policy.
    fn patch(&mut self, user: &str, name: &str, patch: &Value) -> Answer {
        self.patches.push(patch.clone());
        if let Some(forbidden) = self.forbids(user, "patch", name) {
            return forbidden;
        }
        let Some(stored) = self.approvals.get(name).cloned() else {
            return refusal(StatusCode::NOT_FOUND, "NotFound", "not found");
        };
        let meant = &patch["metadata"];
        if meant["resourceVersion"] != stored["metadata"]["resourceVersion"]
            || meant["uid"] != stored["metadata"]["uid"]
        {
            return refusal(StatusCode::CONFLICT, "Conflict", "the object has been modified");
        }
        let decision = &patch["spec"]["decision"];
        assert_eq!(decision["by"], user, "in one's own name");
        let approver = stored["spec"]["approver"].as_str().unwrap();
        if user.starts_with("system:serviceaccount:") || !self.may(user, "approve", "approvers", approver) {
            let message = format!(
                "approvals.bloomery.dev \"{name}\" is forbidden: ValidatingAdmissionPolicy 'bloomery-approvals' with binding \
                 'bloomery-approvals' denied request: {user} may not approve for {approver}"
            );
            return refusal(StatusCode::FORBIDDEN, "Forbidden", &message);
        }
        self.version += 1;
        let mut stored = stored;
        stored["spec"]["decision"] = decision.clone();
        stored["metadata"]["resourceVersion"] = json!(self.version.to_string());
        stored["metadata"]["managedFields"] = json!([{"manager": "kubectl-bloomery"}]);
        self.approvals.insert(name.to_owned(), stored.clone());
        (StatusCode::OK, Json(stored))
    }
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Answer {
    (code, Json(office::refusal(code, reason, message)))
}
