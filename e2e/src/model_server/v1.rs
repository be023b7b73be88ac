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
use super::desk::{Desk, FaultPlace, Place, user};
use super::error::ApiError;
use super::lookup;
use super::request::Request;
use super::script::{Fault, FaultKind, Script, Source, Turn};
use super::stage;

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
    let place = model.desk.receive(&request)?;
    let script = model.script()?;
    if !script.models.is_empty() && !script.models.contains(&request.model) {
        return Err(ApiError::unknown_model(&request.model));
    }
    let known = model.desk.conversation_of(&request);
    let found = lookup::find(&script, &request, place, known.as_deref())
        .map_err(|why| model.desk.refuse(&request, place, (Rule::Scripted, why)))?;
    let lookup::Found { conversation, turn } = found;
    if !conversation.is_empty() {
        model.desk.is_in(&request, conversation);
    }
    let named = stage::named(place.stage, place.turn);
    lookup::expect(&turn.expect, &request).map_err(|why| {
        let why = format!("conversation `{conversation}`, {named}: {why}");
        model.desk.refuse(&request, place, (Rule::Expected, why))
    })?;
    tracing::info!(user = user(&request), conversation, place = named, "asked");
    for (index, fault) in turn.faults.iter().enumerate() {
        let at = FaultPlace {
            user: user(&request).to_owned(),
            conversation: conversation.to_owned(),
            stage: place.stage,
            turn: place.turn,
            index,
        };
        if let Some(served) = model.fault(fault, at, &request).await? {
            return Ok(served);
        }
    }
    model.desk.answered(&request, place);
    Ok(Json(answer::completion(&request, place, &turn)).into_response())
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
    async fn fault(&self, fault: &Fault, at: FaultPlace, request: &Request) -> Result<Option<Response>, ApiError> {
        let place = Place { stage: at.stage, turn: at.turn };
        if let FaultKind::Hold(name) = &fault.kind {
            let released = self.desk.hold(name, request, place).await;
            return if released { Ok(None) } else { Err(stopping()) };
        }
        tracing::info!(user = at.user, conversation = at.conversation, kind = ?fault.kind, "fault");
        if !self.desk.take(at, fault.times) {
            return Ok(None);
        }
        self.serve(&fault.kind, request, place).await.map(Some)
    }

    async fn serve(&self, kind: &FaultKind, request: &Request, place: Place) -> Result<Response, ApiError> {
        match kind {
            FaultKind::Status { status, retry_after } => {
                let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Err(ApiError::scripted(status, *retry_after))
            }
            FaultKind::Garbage => {
                let json = [(header::CONTENT_TYPE, "application/json")];
                Ok((json, "<html>upstream says hello</html>").into_response())
            }
            FaultKind::Say(text) => {
                let turn = Turn { say: Some(text.clone()), ..Turn::default() };
                Ok(Json(answer::completion(request, place, &turn)).into_response())
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
