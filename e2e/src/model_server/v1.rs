//! OpenAI's endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Key;
use super::answer;
use super::check::Rule;
use super::desk::{Desk, FaultPlace, user};
use super::error::ApiError;
use super::request::{Request, text};
use super::script::{Conversation, Expect, Fault, FaultKind, Script, Source, Turn};

/// Conversations grow; a worker's history of many large results must fit.
const BODY_LIMIT: usize = 32 << 20;

#[derive(Clone)]
struct Model {
    script: Arc<Source>,
    key: Option<Key>,
    desk: Desk,
}

pub(super) fn router(script: Source, key: Option<Key>, desk: Desk) -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(complete))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(Model { script: Arc::new(script), key, desk })
}

async fn models(State(model): State<Model>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    model.authenticate(&headers)?;
    let script = model.script()?;
    let listed = script.models.iter();
    let matched = script.conversations.iter().filter_map(|conversation| conversation.matches.model.as_ref());
    let names: BTreeSet<&String> = listed.chain(matched).collect();
    let data: Vec<Value> = names
        .into_iter()
        .map(|name| json!({"id": name, "object": "model", "created": 0, "owned_by": "bloomery-e2e"}))
        .collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

async fn complete(State(model): State<Model>, headers: HeaderMap, body: Bytes) -> Result<Response, ApiError> {
    model.authenticate(&headers)?;
    let request: Request =
        serde_json::from_slice(&body).map_err(|error| model.desk.refuse_unreadable(error.to_string()))?;
    model.desk.receive(&request)?;
    let script = model.script()?;
    if !script.models.is_empty() && !script.models.contains(&request.model) {
        return Err(ApiError::unknown_model(&request.model));
    }
    let (conversation, turn) =
        find(&script, &request).map_err(|why| model.desk.refuse(&request, Rule::Scripted, why))?;
    let place = format!("conversation `{}`, turn {}", conversation.name, request.turn());
    expect(&turn.expect, &request)
        .map_err(|why| model.desk.refuse(&request, Rule::Expected, format!("{place}: {why}")))?;
    tracing::info!(user = user(&request), conversation = conversation.name, turn = request.turn(), "asked");
    for (index, fault) in turn.faults.iter().enumerate() {
        if let Some(served) = model.fault(fault, index, (conversation, &request)).await? {
            return Ok(served);
        }
    }
    model.desk.answered(&request);
    Ok(Json(answer::completion(&request, turn)).into_response())
}

impl Model {
    fn authenticate(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(key) = &self.key else { return Ok(()) };
        let expected = key.read().map_err(|error| internal(&error))?;
        let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match sent.and_then(|value| value.strip_prefix("Bearer ")) {
            Some(sent) if sent == expected => Ok(()),
            _ => Err(ApiError::wrong_key()),
        }
    }

    fn script(&self) -> Result<Arc<Script>, ApiError> {
        self.script.latest().map_err(|error| internal(&error))
    }

    /// Serves a fault, if it is its turn; none: on to what comes after it.
    async fn fault(
        &self,
        fault: &Fault,
        index: usize,
        (conversation, request): (&Conversation, &Request),
    ) -> Result<Option<Response>, ApiError> {
        if let FaultKind::Hold(name) = &fault.kind {
            let released = self.desk.hold(name, request).await;
            return if released { Ok(None) } else { Err(stopping()) };
        }
        let place = FaultPlace {
            user: user(request).to_owned(),
            conversation: conversation.name.clone(),
            turn: request.turn(),
            index,
        };
        if !self.desk.take(place, fault.times) {
            return Ok(None);
        }
        tracing::info!(user = user(request), conversation = conversation.name, kind = ?fault.kind, "fault served");
        self.serve(&fault.kind, request).await.map(Some)
    }

    async fn serve(&self, kind: &FaultKind, request: &Request) -> Result<Response, ApiError> {
        match kind {
            FaultKind::Status { status, retry_after } => {
                let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Err(ApiError::scripted(status, *retry_after))
            }
            FaultKind::Garbage => {
                let json = [(header::CONTENT_TYPE, "application/json")];
                Ok((json, "<html>upstream says hello</html>").into_response())
            }
            FaultKind::Empty => Ok(Json(answer::without_choices(request)).into_response()),
            FaultKind::ErrorInside => {
                let error = ApiError::scripted(StatusCode::INTERNAL_SERVER_ERROR, None);
                Ok(Json(error.body()).into_response())
            }
            // A client that goes away ends this, and so does the end of the server.
            FaultKind::Hang | FaultKind::Hold(_) => {
                self.desk.stop.cancelled().await;
                Err(stopping())
            }
        }
    }
}

fn internal(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "cannot answer");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn stopping() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The server is stopping.")
}

/// Finds the turn that a request asks for.
fn find<'a>(script: &'a Script, request: &Request) -> Result<(&'a Conversation, &'a Turn), String> {
    let goal = request.of_role("user").next().map(text).unwrap_or_default();
    let system = request.system_text().unwrap_or_default();
    let belongs = |conversation: &&Conversation| {
        let wanted = &conversation.matches;
        wanted.goal.as_ref().is_none_or(|part| goal.contains(part))
            && wanted.system.as_ref().is_none_or(|part| system.contains(part))
            && wanted.model.as_ref().is_none_or(|name| *name == request.model)
    };
    let conversation = script.conversations.iter().find(belongs).ok_or_else(|| {
        format!("no conversation of the script matches the model `{}` and the goal `{goal}`", request.model)
    })?;
    let turn = conversation.turns.get(request.turn()).ok_or_else(|| {
        let turns = conversation.turns.len();
        format!("conversation `{}` has {turns} turns; turn {} was asked for", conversation.name, request.turn())
    })?;
    Ok((conversation, turn))
}

/// Says what a request lacks that its turn expects.
fn expect(expect: &Expect, request: &Request) -> Result<(), String> {
    let Expect {
        last_tool_result_contains,
        last_user_message_contains,
        system_contains,
        tools_offered,
        tools_not_offered,
    } = expect;
    let texts = [
        ("the last tool result", last_tool_result_contains, request.of_role("tool").next_back().map(text)),
        ("the last user message", last_user_message_contains, request.of_role("user").next_back().map(text)),
        ("the system message", system_contains, request.system_text()),
    ];
    for (what, part, text) in texts {
        let Some(part) = part else { continue };
        match text {
            Some(text) if text.contains(part) => {}
            Some(text) => return Err(format!("{what} should contain `{part}` and is `{text}`")),
            None => return Err(format!("{what} should contain `{part}` and there is none")),
        }
    }
    let offered: BTreeSet<&str> = request.tool_names().collect();
    if let Some(name) = tools_offered.iter().find(|name| !offered.contains(name.as_str())) {
        return Err(format!("`{name}` should be offered; offered are {offered:?}"));
    }
    match tools_not_offered.iter().find(|name| offered.contains(name.as_str())) {
        Some(name) => Err(format!("`{name}` should not be offered; offered are {offered:?}")),
        None => Ok(()),
    }
}
