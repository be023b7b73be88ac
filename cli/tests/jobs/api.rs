//! An API server in memory, as far as Jobs and pods need one: objects with versions, lists, watches, merge patches, logs.
//! Whoever asks is whom they impersonate.

use crate::office;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// The API server. Clones are the same one.
#[derive(Clone, Default)]
pub struct Api(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// By path.
    objects: BTreeMap<String, Value>,
    /// What happened: the version, the kind of event, the path, the object.
    history: Vec<(u64, &'static str, String, Value)>,
    logs: BTreeMap<String, String>,
    /// What nobody but the administrator may: `verb resource`, followed by ` everywhere` where it is of all namespaces only.
    forbidden: BTreeSet<String>,
    requests: Vec<String>,
    patches: Vec<Value>,
    /// Written by somebody else, one before each of the next patches.
    meanwhile: Vec<(String, Value)>,
    answers_lost: u32,
    /// The state that the container of a pod gets when its pod is made.
    pods_begin: Value,
}

/// The path of a Job.
pub fn job_path(name: &str) -> String {
    format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/{name}")
}

/// The path of a pod.
pub fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/acme/pods/{name}")
}

impl Api {
    /// Serves it; returns its address.
    pub async fn serve(&self) -> String {
        office::serve(axum::Router::new().fallback(answer).with_state(self.clone())).await
    }

    /// Stores an object, and tells whoever watches.
    pub fn put(&self, path: &str, object: Value) {
        self.state().put(path, object);
        self.0.changed.notify_waiters();
    }

    /// Deletes an object, and tells whoever watches.
    pub fn remove(&self, path: &str) {
        self.state().remove(path);
        self.0.changed.notify_waiters();
    }

    /// A stored object.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path).cloned()
    }

    /// Gives a pod a log.
    pub fn logs(&self, pod: &str, text: &str) {
        self.state().logs.insert(pod.to_owned(), text.to_owned());
    }

    /// What nobody but the administrator may.
    pub fn forbids(&self, rights: &[&str]) {
        self.state().forbidden.extend(rights.iter().map(|right| (*right).to_owned()));
    }

    /// Lets somebody else write an object just before one of the next patches.
    pub fn meanwhile(&self, path: &str, object: Value) {
        self.state().meanwhile.push((path.to_owned(), object));
    }

    /// Loses the answer to the next patch, which is made.
    pub fn loses_an_answer(&self) {
        self.state().answers_lost = 1;
    }

    /// The state in which the containers of pods are, once these are made.
    pub fn pods_begin(&self, state: Value) {
        self.state().pods_begin = state;
    }

    /// What was asked: user, verb and path.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The patches that came.
    pub fn patches(&self) -> Vec<Value> {
        self.state().patches.clone()
    }

    /// Waits until something was asked for.
    pub async fn until_asked(&self, what: &str) {
        loop {
            let changed = self.0.changed.notified();
            if self.state().requests.iter().any(|asked| asked.contains(what)) {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl State {
    fn forbids(&self, right: &str, is_everywhere: bool) -> bool {
        self.forbidden.contains(right) || (is_everywhere && self.forbidden.contains(&format!("{right} everywhere")))
    }

    fn put(&mut self, path: &str, mut object: Value) -> Value {
        let version = self.history.len() as u64 + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let kind = if self.objects.contains_key(path) { "MODIFIED" } else { "ADDED" };
        self.history.push((version, kind, path.to_owned(), object.clone()));
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        let object = self.objects.remove(path)?;
        self.history.push((self.history.len() as u64 + 1, "DELETED", path.to_owned(), object.clone()));
        Some(object)
    }
}

async fn answer(Shared(api): Shared<Api>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let user = headers.get("impersonate-user").map_or("admin", |value| value.to_str().unwrap()).to_owned();
    let accept = headers.get("accept").map_or("", |value| value.to_str().unwrap()).to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (path, query) = (uri.path().to_owned(), Query::read(uri.query().unwrap_or_default()));
    let verb = if query.watch { "WATCH".to_owned() } else { method.to_string() };
    api.state().requests.push(format!("{user} {verb} {path}"));
    api.0.changed.notify_waiters();
    if path.ends_with("/selfsubjectaccessreviews") {
        let asked = &body["spec"]["resourceAttributes"];
        let resource = [asked["resource"].as_str(), asked["subresource"].as_str()];
        let resource = resource.into_iter().flatten().collect::<Vec<_>>().join("/");
        let right = format!("{} {resource}", asked["verb"].as_str().unwrap());
        let allowed = !api.state().forbids(&right, asked["namespace"].is_null());
        return told(
            StatusCode::CREATED,
            &json!({"metadata": {}, "spec": body["spec"], "status": {"allowed": allowed}}),
        );
    }
    let is_collection = path.ends_with("/skilljobs")
        || path.ends_with("/pods")
        || path.ends_with("/skills")
        || path.ends_with("/approvals");
    let right = right(&method, &path, is_collection, query.watch);
    let is_everywhere = !path.contains("/namespaces/");
    if user != "admin" && api.state().forbids(&right, is_everywhere) {
        let place = if is_everywhere { "at the cluster scope" } else { "in the namespace \"acme\"" };
        let message = format!("User \"{user}\" cannot {right} {place}");
        return refusal(StatusCode::FORBIDDEN, "Forbidden", &message);
    }
    match method {
        Method::GET if query.watch => watched(&api, &path, query),
        Method::GET if is_collection => listed(&api, &path, &query, accept.contains("PartialObjectMetadata")),
        Method::GET if path.ends_with("/log") => log(&api, path.trim_end_matches("/log")),
        Method::GET => found(api.state().objects.get(&path).cloned()),
        Method::PATCH => patched(&api, &path, &body),
        Method::POST => made(&api, &path, body),
        Method::DELETE => {
            let removed = api.state().remove(&path);
            api.0.changed.notify_waiters();
            found(removed)
        }
        _ => panic!("{method} {uri} is not expected"),
    }
}

fn right(method: &Method, path: &str, is_collection: bool, watch: bool) -> String {
    let verb = match *method {
        Method::GET if watch => "watch",
        Method::GET if is_collection => "list",
        Method::GET => "get",
        Method::PATCH => "patch",
        Method::POST => "create",
        _ => "delete",
    };
    let resource = ["skilljobs", "pods", "skills", "approvals"].into_iter().find(|name| path.contains(name)).unwrap();
    let log = if path.ends_with("/log") { "/log" } else { "" };
    format!("{verb} {resource}{log}")
}

/// What a list or a watch is asked for.
#[derive(Clone, Default)]
struct Query {
    watch: bool,
    version: u64,
    labels: Vec<(String, Option<String>)>,
    name: Option<String>,
}

impl Query {
    fn read(text: &str) -> Self {
        let mut query = Self::default();
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = value.replace("%3D", "=").replace("%2F", "/").replace("%2C", ",");
            match name {
                "watch" => query.watch = value == "true",
                "resourceVersion" => query.version = value.parse().unwrap_or_default(),
                "fieldSelector" => query.name = value.strip_prefix("metadata.name=").map(str::to_owned),
                "labelSelector" => {
                    let label = |text: &str| match text.split_once('=') {
                        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                        None => (text.to_owned(), None),
                    };
                    query.labels = value.split(',').map(label).collect();
                }
                _ => {}
            }
        }
        query
    }

    fn takes(&self, collection: &str, path: &str, object: &Value) -> bool {
        let is_in = path.rsplit_once('/').is_some_and(|(of, _)| of == collection || is_of_all(collection, of));
        let is_named = self.name.as_ref().is_none_or(|name| object["metadata"]["name"] == **name);
        let has = |(name, value): &(String, Option<String>)| {
            let label = &object["metadata"]["labels"][name];
            value.as_ref().map_or(!label.is_null(), |value| label == value.as_str())
        };
        is_in && is_named && self.labels.iter().all(has)
    }
}

/// Whether a collection is that of all namespaces.
fn is_of_all(all: &str, one: &str) -> bool {
    all == one.replace("/namespaces/acme", "")
}

fn listed(api: &Api, path: &str, query: &Query, is_partial: bool) -> Response {
    let state = api.state();
    let items = state.objects.iter().filter(|(of, object)| query.takes(path, of, object)).map(|(_, object)| object);
    let part = |item: &Value| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": item["metadata"]});
    let items: Vec<Value> = items.map(|item| if is_partial { part(item) } else { item.clone() }).collect();
    let version = state.history.len().to_string();
    told(StatusCode::OK, &json!({"metadata": {"resourceVersion": version}, "items": items}))
}

fn watched(api: &Api, path: &str, query: Query) -> Response {
    let (api, path) = (api.clone(), path.to_owned());
    let events = unfold((api, path, query), async |(api, path, mut query)| {
        loop {
            let inner = Arc::clone(&api.0);
            let changed = inner.changed.notified();
            let next = {
                let state = api.state();
                let mut later = state.history.iter().filter(|(version, ..)| *version > query.version);
                later.find(|(_, _, of, object)| query.takes(&path, of, object)).cloned()
            };
            if let Some((version, kind, _, object)) = next {
                query.version = version;
                let line = json!({"type": kind, "object": object}).to_string() + "\n";
                return Some((Ok::<_, std::io::Error>(line), (api, path, query)));
            }
            changed.await;
        }
    });
    Response::new(Body::from_stream(events))
}

fn log(api: &Api, pod: &str) -> Response {
    let name = pod.rsplit('/').next().unwrap();
    let text = {
        let state = api.state();
        let made = state.logs.iter().find(|(of, _)| name.starts_with(of.as_str()));
        made.map(|(_, text)| text.clone())
    };
    let Some(text) = text else { return refusal(StatusCode::NOT_FOUND, "NotFound", "no such pod") };
    // Whoever has read it all finds that the pod has ended.
    if let Some(mut object) = api.object(pod).filter(|object| object["status"]["phase"] == "Running") {
        object["status"]["phase"] = json!("Succeeded");
        api.put(pod, object);
    }
    text.into_response()
}

fn patched(api: &Api, path: &str, change: &Value) -> Response {
    let overtakes = {
        let mut state = api.state();
        if state.meanwhile.is_empty() { None } else { Some(state.meanwhile.remove(0)) }
    };
    if let Some((path, object)) = overtakes {
        api.put(&path, object);
    }
    let answer = {
        let mut state = api.state();
        state.patches.push(change.clone());
        let Some(mut stored) = state.objects.get(path).cloned() else {
            return refusal(StatusCode::NOT_FOUND, "NotFound", "not found");
        };
        for field in ["uid", "resourceVersion"] {
            let meant = &change["metadata"][field];
            if !meant.is_null() && *meant != stored["metadata"][field] {
                return refusal(StatusCode::CONFLICT, "Conflict", "the object has been modified");
            }
        }
        for (field, value) in change["spec"].as_object().unwrap() {
            stored["spec"][field] = value.clone();
        }
        let stored = state.put(path, stored);
        if std::mem::take(&mut state.answers_lost) > 0 {
            refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the answer was lost")
        } else {
            told(StatusCode::OK, &stored)
        }
    };
    api.0.changed.notify_waiters();
    answer
}

fn made(api: &Api, collection: &str, mut object: Value) -> Response {
    let name = format!("{}x1", object["metadata"]["generateName"].as_str().unwrap());
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(format!("uid of {name}"));
    let state = api.state().pods_begin.clone();
    object["status"] = json!({
        "phase": if state.get("waiting").is_some() { "Pending" } else { "Running" },
        "containerStatuses": [
            {"name": "worker", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state},
        ],
    });
    api.put(&format!("{collection}/{name}"), object.clone());
    told(StatusCode::CREATED, &object)
}

fn found(object: Option<Value>) -> Response {
    object
        .map_or_else(|| refusal(StatusCode::NOT_FOUND, "NotFound", "not found"), |object| told(StatusCode::OK, &object))
}

fn told(code: StatusCode, object: &Value) -> Response {
    (code, axum::Json(object.clone())).into_response()
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Response {
    told(code, &office::refusal(code, reason, message))
}
