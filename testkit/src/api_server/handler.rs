//! Answers HTTP requests.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures::stream::unfold;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::access::{ADMINISTRATOR, AccessRequest};
use super::query::{Parameters, only_metadata};
use super::server::ApiServer;
use super::store::{Answer, State, WriteRequest, not_found, refused};
use super::target::Target;

/// The content type of a strategic merge patch.
const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// The content type of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

impl ApiServer {
    /// Returns the router that answers requests. A `kube::Client` can take it as its service.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    /// Serves on a free port of 127.0.0.1 until the runtime of the test ends. Returns the URL.
    ///
    /// # Panics
    /// No port is free.
    pub async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = self.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }
}

async fn answer(
    extract::State(api): extract::State<ApiServer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let user = Some(text("impersonate-user")).filter(|user| !user.is_empty()).unwrap_or(ADMINISTRATOR);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = uri.path();
    let Some(target) = Target::parse(path) else { panic!("{method} {uri} is not the path of a resource") };
    let parameters = Parameters::read(&uri);
    let verb = if parameters.watch { "WATCH" } else { method.as_str() };
    let mut state = api.state();
    state.requests.push(format!("{user} {verb} {path}"));
    api.notify();
    if state.expired_users.contains(user) {
        return respond(refused(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"));
    }
    if let Some(message) = state.access.impersonation_denial(user) {
        return respond(refused(StatusCode::FORBIDDEN, "Forbidden", &message));
    }
    if let Some(answer) = review(&mut state, user, &target, &body) {
        return respond(answer);
    }
    if state.uninstalled_group.as_deref() == Some(target.group()) {
        let message = "the server could not find the requested resource";
        return respond(refused(StatusCode::NOT_FOUND, "NotFound", message));
    }
    if let Some(message) = state.access.denial(user, target.verb(&method, parameters.watch), &target) {
        return respond(refused(StatusCode::FORBIDDEN, "Forbidden", &message));
    }
    if method == Method::GET && parameters.watch {
        drop(state);
        return watch(api, target, parameters);
    }
    let is_partial = text(header::ACCEPT.as_str()).contains("PartialObjectMetadata");
    if method == Method::GET {
        return read(&mut state, path, &target, &parameters, is_partial);
    }
    let is_strategic = text(header::CONTENT_TYPE.as_str()) == STRATEGIC_MERGE;
    let write = WriteRequest { user, target: &target, body, is_dry_run: parameters.dry_run.is_some(), is_strategic };
    let object = target.object(target.name.as_deref().unwrap_or_default());
    let answer = match method {
        Method::POST => state.create(&write),
        Method::PUT => state.replace(&write, &object),
        Method::PATCH if text(header::CONTENT_TYPE.as_str()) == APPLY => state.apply(&write, &object),
        Method::PATCH => state.patch(&write, &object),
        Method::DELETE => state.delete(&write, &object),
        _ => panic!("{method} {uri} is not expected"),
    };
    drop(state);
    api.notify();
    respond(answer)
}

/// Answers `SelfSubjectReview`, `SelfSubjectAccessReview` and `TokenReview` requests, and accepts Kubernetes Events. Returns
/// `None` for other requests.
fn review(state: &mut State, user: &str, target: &Target, body: &Value) -> Option<Answer> {
    let status = match target.plural.as_str() {
        "selfsubjectreviews" => json!({"userInfo": {"username": user}}),
        "selfsubjectaccessreviews" => {
            let attributes = &body["spec"]["resourceAttributes"];
            let text = |field: &str| attributes[field].as_str().unwrap_or_default();
            let resource = match text("subresource") {
                "" => text("resource").to_owned(),
                subresource => format!("{}/{subresource}", text("resource")),
            };
            let is_everywhere = text("namespace").is_empty();
            let request =
                AccessRequest { user, verb: text("verb"), resource: &resource, name: text("name"), is_everywhere };
            json!({"allowed": state.access.allows(request)})
        }
        "tokenreviews" => {
            state.token_reviews += 1;
            let token = body["spec"]["token"].as_str().unwrap_or_default();
            state.token_reviews_by_token.get(token).unwrap_or(&state.token_review).clone()
        }
        "events" => return Some((StatusCode::CREATED, body.clone())),
        _ => return None,
    };
    Some((StatusCode::CREATED, json!({"metadata": {}, "spec": body["spec"], "status": status})))
}

fn read(state: &mut State, path: &str, target: &Target, parameters: &Parameters, is_partial: bool) -> Response {
    let format = |object: &Value| if is_partial { only_metadata(object) } else { object.clone() };
    match target.subresource.as_deref() {
        None if target.name.is_none() => respond(list(state, target, parameters, &format)),
        None => {
            if path.contains("/namespaces/") {
                state.reads.push(path.to_owned());
            }
            let found = state.objects.get(path).map(|object| (StatusCode::OK, format(object)));
            respond(found.unwrap_or_else(|| not_found(target)))
        }
        Some("log") => log(state, target),
        Some(_) => respond(not_found(target)),
    }
}

fn list(state: &State, target: &Target, parameters: &Parameters, format: &dyn Fn(&Value) -> Value) -> Answer {
    let selected = state.objects.iter().filter(|(path, object)| parameters.selects(target, path, object));
    let all: Vec<&Value> = selected.map(|(_, object)| object).collect();
    let rest = all.get(parameters.first.unwrap_or_default()..).unwrap_or_default();
    let page = rest.get(..parameters.limit.unwrap_or(usize::MAX)).unwrap_or(rest);
    let next = parameters.first.unwrap_or_default() + page.len();
    let token = if next < all.len() { next.to_string() } else { String::new() };
    let items: Vec<Value> = page.iter().map(|object| format(object)).collect();
    let metadata = json!({"resourceVersion": state.version().to_string(), "continue": token});
    (StatusCode::OK, json!({"metadata": metadata, "items": items}))
}

/// Returns the log of a pod, and ends the pod if it is running.
fn log(state: &mut State, target: &Target) -> Response {
    let name = target.name.as_deref().unwrap_or_default();
    let log = state.logs.iter().find(|(prefix, _)| name.starts_with(prefix.as_str()));
    let Some((_, text)) = log else { return respond(not_found(target)) };
    let text = text.clone();
    let path = target.object(name);
    if let Some(mut pod) = state.find(&path).filter(|pod| pod["status"]["phase"] == "Running") {
        pod["status"]["phase"] = json!("Succeeded");
        state.put(&path, pod);
    }
    text.into_response()
}

/// Streams the changes after a version, one JSON object a line.
fn watch(api: ApiServer, target: Target, parameters: Parameters) -> Response {
    let after = parameters.resource_version.unwrap_or_default();
    let events = unfold((api, target, parameters, after), async |(api, target, parameters, after)| {
        loop {
            let server = api.clone();
            let changed = server.changed();
            let next = {
                let state = api.state();
                let mut later = state.history.iter().filter(|event| event.version > after && !state.are_watches_silent);
                later.find(|event| parameters.selects(&target, &event.path, &event.object)).cloned()
            };
            if let Some(event) = next {
                let line = json!({"type": event.kind, "object": event.object}).to_string() + "\n";
                return Some((Ok::<_, io::Error>(line), (api, target, parameters, event.version)));
            }
            changed.await;
        }
    });
    Response::new(Body::from_stream(events))
}

fn respond((code, body): Answer) -> Response {
    (code, Json(body)).into_response()
}
