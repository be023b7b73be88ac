//! The streamable HTTP endpoint (`docs/explanation/mcp.md`).

use crate::connection::{Connection, Part, Reply};
use crate::message::{self, INVALID_REQUEST, Kind, METHOD_NOT_FOUND, Message, PARSE_ERROR};
use crate::program::Era;
use crate::sessions::{BeginError, Sessions};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream;
use std::convert::Infallible;
use std::sync::Arc;

/// The header with the id of a session.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The largest message of a client, in bytes.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// Returns the router of the endpoint at `path`.
pub(crate) fn router(path: &str, sessions: Arc<Sessions>) -> Router {
    // GET would open a stream for messages that belong to no request, which the bridge does not offer.
    let methods = post(handle_post).delete(handle_delete);
    Router::new().route(path, methods).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)).with_state(sessions)
}

async fn handle_post(State(sessions): State<Arc<Sessions>>, headers: HeaderMap, body: String) -> Response {
    if let Some(refusal) = refuse_browser(&headers) {
        return refusal;
    }
    let message = Message::read(&body);
    let Some((kind, message)) = message.and_then(|message| Some((message.kind()?, message))) else {
        return refuse(StatusCode::BAD_REQUEST, None, PARSE_ERROR, "the body is not one JSON-RPC message");
    };
    let is_initialize = kind == Kind::Request("initialize".to_owned());
    let connection = match session_id(&headers) {
        Some(id) => match sessions.find(id) {
            Some(connection) => connection,
            None => return (StatusCode::NOT_FOUND, "the session has ended").into_response(),
        },
        None if sessions.era() == Era::Stateless => match sessions.shared() {
            Ok(connection) => connection,
            Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        },
        None if is_initialize => return begin(&sessions, message).await,
        None => {
            let (code, why) = match &kind {
                Kind::Request(method) if method == "server/discover" => (METHOD_NOT_FOUND, "this server has sessions"),
                _ => (INVALID_REQUEST, "the header Mcp-Session-Id is missing"),
            };
            return refuse(StatusCode::BAD_REQUEST, Some(&message), code, why);
        }
    };
    match kind {
        Kind::Request(_) => ask(&connection, message).await,
        Kind::Notification(_) => match connection.notify(message).await {
            Ok(()) => StatusCode::ACCEPTED.into_response(),
            Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        },
        // The bridge itself answers the requests of servers.
        Kind::Answer => StatusCode::ACCEPTED.into_response(),
    }
}

async fn handle_delete(State(sessions): State<Arc<Sessions>>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refuse_browser(&headers) {
        return refusal;
    }
    match session_id(&headers) {
        Some(id) if sessions.end(id) => StatusCode::NO_CONTENT.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Begins a session with the request `initialize`. If the server refuses it, no session begins.
async fn begin(sessions: &Sessions, initialize: Message) -> Response {
    let (id, connection) = match sessions.begin() {
        Ok(begun) => begun,
        Err(error @ BeginError::Full(_)) => {
            return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response();
        }
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    // Dropped with this future if the client goes away, or on an early return.
    let mut unbegun = Unbegun { sessions, id: Some(id) };
    let answer = match connection.request(initialize).await {
        Ok(mut reply) => reply.answer().await,
        Err(_) => None,
    };
    let Some(answer) = answer else { return lost() };
    let is_refused = Message::read(&answer).is_none_or(|answer| answer.is_error());
    let mut response = json(answer);
    if let Some(id) = unbegun.id.take_if(|_| !is_refused)
        && let Ok(id) = HeaderValue::from_str(&id)
    {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Ends a session that has not begun.
struct Unbegun<'a> {
    sessions: &'a Sessions,
    id: Option<String>,
}

impl Drop for Unbegun<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.sessions.end(id);
        }
    }
}

/// Sends a request. Its reply is one JSON body if it consists of the answer only, or else a stream.
async fn ask(connection: &Arc<Connection>, request: Message) -> Response {
    let Ok(mut reply) = connection.request(request).await else { return lost() };
    match reply.next().await {
        Some(Part::Answer(answer)) => json(answer),
        Some(Part::Note(note)) => stream(note, reply),
        None => lost(),
    }
}

/// The response to a request that the server may have run: a client cannot know.
fn lost() -> Response {
    (StatusCode::BAD_GATEWAY, "the process of the MCP server ended before it answered").into_response()
}

fn json(body: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

fn stream(first: String, reply: Reply) -> Response {
    let parts = stream::unfold((Some(Part::Note(first)), Some(reply)), async |(part, reply)| {
        let mut reply = reply?;
        let part = match part {
            Some(part) => part,
            // The end of the stream without an answer shows that the answer is lost.
            None => reply.next().await?,
        };
        let (text, rest) = match part {
            Part::Note(text) => (text, Some(reply)),
            Part::Answer(text) => (text, None),
        };
        Some((Ok::<_, Infallible>(format!("data: {text}\n\n")), (None, rest)))
    });
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")], Body::from_stream(parts)).into_response()
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

/// Refuses requests of browsers, which a foreign page can send to any address that its reader can reach.
fn refuse_browser(headers: &HeaderMap) -> Option<Response> {
    headers.contains_key(ORIGIN).then(|| (StatusCode::FORBIDDEN, "browsers are not served").into_response())
}

fn refuse(status: StatusCode, request: Option<&Message>, code: i64, why: &str) -> Response {
    let body = message::error(request.and_then(Message::id), code, why);
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
