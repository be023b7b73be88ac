//! The HTTP routes for clients, as the providers have them. Each request is read, checked and answered here.

mod response;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use self::response::ScriptedRequest;
use super::error::ApiError;
use super::key::Key;
use super::lookup::{self, Found};
use super::request::Protocol;
use super::script::{Script, Source};
use super::state::ServerState;
use super::violation::Rule;
use super::wire;

/// The limit on a request body, in bytes. A history with many large results has to fit.
const MAX_BODY_BYTES: usize = 32 << 20;

#[derive(Clone)]
struct Model {
    script: Arc<Source>,
    key: Option<Key>,
    state: ServerState,
}

pub(super) fn router(script: Source, key: Option<Key>, state: ServerState) -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Model { script: Arc::new(script), key, state })
}

async fn models(State(model): State<Model>, headers: HeaderMap) -> Response {
    let protocol = wire::protocol_of(&headers);
    model.respond(protocol, model.list(protocol, &headers))
}

async fn chat_completions(State(model): State<Model>, headers: HeaderMap, body: Bytes) -> Response {
    model.respond(Protocol::Openai, model.complete(Protocol::Openai, &headers, &body).await)
}

async fn messages(State(model): State<Model>, headers: HeaderMap, body: Bytes) -> Response {
    model.respond(Protocol::Anthropic, model.complete(Protocol::Anthropic, &headers, &body).await)
}

impl Model {
    fn list(&self, protocol: Protocol, headers: &HeaderMap) -> Result<Response, ApiError> {
        self.authenticate(protocol, headers)?;
        let script = self.script()?;
        let listed = script.models.iter();
        let matched = script.conversations.iter().filter_map(|conversation| conversation.matches.model.as_ref());
        let names: BTreeSet<&String> = listed.chain(matched).collect();
        Ok(Json(wire::models(protocol, names.into_iter())).into_response())
    }

    async fn complete(&self, protocol: Protocol, headers: &HeaderMap, body: &[u8]) -> Result<Response, ApiError> {
        self.authenticate(protocol, headers)?;
        let request = wire::read(protocol, headers, body).map_err(|error| self.state.refuse_unreadable(&error))?;
        let place = self.state.receive(&request)?;
        let script = self.script()?;
        if !script.models.is_empty() && !script.models.contains(&request.model) {
            return Err(ApiError::unknown_model(&request.model));
        }
        let known = self.state.conversation_of(&request);
        let found = lookup::find(&script, &request, place, known.as_deref())
            .map_err(|broken| self.state.refuse(&request, place, broken))?;
        let Found { conversation, unknown_fields, turn } = found;
        if !conversation.is_empty() {
            self.state.set_conversation(&request, conversation);
        }
        if let Some(field) = unknown_fields.iter().find(|field| request.has(field)) {
            return Err(ApiError::bad_request(wire::unknown_field(protocol, field)));
        }
        lookup::check_expectations(&turn.expect, &request).map_err(|unexpected| {
            let message = format!("conversation `{conversation}`, {place}: {unexpected}");
            self.state.refuse(&request, place, (Rule::Expected, message))
        })?;
        tracing::info!(user = request.user_name(), conversation, place = place.to_string(), "request");
        ScriptedRequest { state: &self.state, request: &request, place, conversation, turn: &turn }.respond().await
    }

    fn authenticate(&self, protocol: Protocol, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(key) = &self.key else { return Ok(()) };
        let expected = key.read().map_err(|error| internal_error(&error))?;
        if wire::key(protocol, headers) == Some(expected.as_str()) { Ok(()) } else { Err(ApiError::wrong_key()) }
    }

    fn script(&self) -> Result<Arc<Script>, ApiError> {
        self.script.latest().map_err(|error| internal_error(&error))
    }

    /// Adds the headers of a response, and writes an error in the form of its protocol.
    fn respond(&self, protocol: Protocol, outcome: Result<Response, ApiError>) -> Response {
        let mut response = outcome.unwrap_or_else(|error| {
            let mut response = (error.status, Json(wire::error(protocol, &error))).into_response();
            if let Some(value) = error.retry_after().and_then(|when| HeaderValue::try_from(when).ok()) {
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
            response
        });
        if let Ok(id) = HeaderValue::try_from(format!("req_{}", self.state.request_count())) {
            response.headers_mut().insert(HeaderName::from_static(wire::request_id_header(protocol)), id);
        }
        response
    }
}

fn internal_error(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "cannot answer");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
