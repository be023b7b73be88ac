//! The providers' endpoints, and the way of a request through them.

mod faults;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use super::Key;
use super::answer::Answer;
use super::check::Rule;
use super::delivery::Delivery;
use super::desk::{Desk, FaultPlace, Place, user};
use super::error::ApiError;
use super::lookup::{self, Found};
use super::request::Request;
use super::script::{Script, Source, Turn};
use super::stage;
use super::wire::Wire;

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
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(Model { script: Arc::new(script), key, desk })
}

async fn models(State(model): State<Model>, headers: HeaderMap) -> Response {
    let wire = Wire::of(&headers);
    model.respond(wire, model.list(wire, &headers))
}

async fn chat_completions(State(model): State<Model>, headers: HeaderMap, body: Bytes) -> Response {
    model.respond(Wire::Openai, model.complete(Wire::Openai, &headers, &body).await)
}

async fn messages(State(model): State<Model>, headers: HeaderMap, body: Bytes) -> Response {
    model.respond(Wire::Anthropic, model.complete(Wire::Anthropic, &headers, &body).await)
}

impl Model {
    fn list(&self, wire: Wire, headers: &HeaderMap) -> Result<Response, ApiError> {
        self.authenticate(wire, headers)?;
        let script = self.script()?;
        let listed = script.models.iter();
        let matched = script.conversations.iter().filter_map(|conversation| conversation.matches.model.as_ref());
        let names: BTreeSet<&String> = listed.chain(matched).collect();
        Ok(Json(wire.models(names.into_iter())).into_response())
    }

    async fn complete(&self, wire: Wire, headers: &HeaderMap, body: &[u8]) -> Result<Response, ApiError> {
        self.authenticate(wire, headers)?;
        let request = wire.read(headers, body).map_err(|why| self.desk.refuse_unreadable(why))?;
        let place = self.desk.receive(&request)?;
        let script = self.script()?;
        if !script.models.is_empty() && !script.models.contains(&request.model) {
            return Err(ApiError::unknown_model(&request.model));
        }
        let known = self.desk.conversation_of(&request);
        let found = lookup::find(&script, &request, place, known.as_deref())
            .map_err(|why| self.desk.refuse(&request, place, (Rule::Scripted, why)))?;
        let Found { conversation, unknown_fields, turn } = found;
        if !conversation.is_empty() {
            self.desk.is_in(&request, conversation);
        }
        if let Some(field) = unknown_fields.iter().find(|field| request.has(field)) {
            return Err(ApiError::bad_request(wire.unknown_field(field)));
        }
        let named = stage::named(place.stage, place.turn);
        lookup::expect(&turn.expect, &request).map_err(|why| {
            let why = format!("conversation `{conversation}`, {named}: {why}");
            self.desk.refuse(&request, place, (Rule::Expected, why))
        })?;
        tracing::info!(user = user(&request), conversation, place = named, "asked");
        if let Some(served) = self.faults(&request, place, conversation, &turn).await? {
            return Ok(served);
        }
        Ok(self.answer(&request, place, &turn).into_response(self.desk.stop.clone()))
    }

    /// Serves the fault of a turn that is next; none: they are spent.
    async fn faults(
        &self,
        request: &Request,
        place: Place,
        conversation: &str,
        turn: &Turn,
    ) -> Result<Option<Response>, ApiError> {
        for (index, fault) in turn.faults.iter().enumerate() {
            let at = FaultPlace {
                user: user(request).to_owned(),
                conversation: conversation.to_owned(),
                stage: place.stage,
                turn: place.turn,
                index,
            };
            if let Some(served) = self.fault(fault, at, request, turn).await? {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }

    /// Prepares the scripted answer.
    fn answer(&self, request: &Request, place: Place, turn: &Turn) -> Delivery {
        let answer = Answer::of(request, place, turn, self.desk.cached(request));
        self.desk.answered(request, place, &answer);
        Delivery::of(request, &answer)
    }

    fn authenticate(&self, wire: Wire, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(key) = &self.key else { return Ok(()) };
        let expected = key.read().map_err(|error| internal(&error))?;
        if wire.key(headers) == Some(expected.as_str()) { Ok(()) } else { Err(ApiError::wrong_key()) }
    }

    fn script(&self) -> Result<Arc<Script>, ApiError> {
        self.script.latest().map_err(|error| internal(&error))
    }

    /// Gives an answer its headers, and an error the shape of its protocol.
    fn respond(&self, wire: Wire, outcome: Result<Response, ApiError>) -> Response {
        let mut response = outcome.unwrap_or_else(|error| {
            let mut response = (error.status, Json(wire.error(&error))).into_response();
            if let Some(value) = error.retry_after().and_then(|when| HeaderValue::try_from(when).ok()) {
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
            response
        });
        if let Ok(id) = HeaderValue::try_from(format!("req_{}", self.desk.total())) {
            response.headers_mut().insert(HeaderName::from_static(wire.request_id()), id);
        }
        response
    }
}

fn internal(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "cannot answer");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
