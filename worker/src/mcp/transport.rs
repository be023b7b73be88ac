//! The HTTP under MCP: rmcp's transport speaks through it, and it notes on the `Wire` what it does.
//!
//! Every body is bounded. Nothing is sent twice. A stream whose connection was lost may be resumed, where the
//! server numbers its events: that asks for the rest of an answer, and repeats no call.

use super::mend::{self, mended};
use super::trouble::{Error, broken, fate, unanswered};
use super::wire::{self, Fate, Wire};
use super::{MAX_BODY, news};
use crate::http::{self, cause};
use bloomery_redact::Redactor;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// How much of a server's refusal is read, in bytes, and how much of it is passed on.
const MAX_REFUSAL: usize = 64 * 1024;
const MAX_QUOTE: usize = 300;

/// A server may ask to resume at once, again and again; this is the least pause before each time.
const RESUME_PAUSE: Duration = Duration::from_millis(200);

/// How long the end of a session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

type Outcome<T> = Result<T, StreamableHttpError<Error>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of one session.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    http: reqwest::Client,
    redactor: Redactor,
    wire: Wire,
    overflowed: Arc<AtomicBool>,
    /// There is nothing that it could be shown.
    is_without_credentials: bool,
}

impl Transport {
    /// The transport of no session yet. What it reads holds no secret that `redactor` knows.
    pub(super) fn new(http: reqwest::Client, redactor: Redactor) -> Self {
        Self { http, redactor, wire: Wire::default(), overflowed: Arc::default(), is_without_credentials: false }
    }

    /// The same where whoever asks for credentials is told nothing else the next time.
    pub(super) fn without_credentials(self) -> Self {
        Self { is_without_credentials: true, ..self }
    }

    /// The same for a session that begins.
    pub(super) fn of_session(&self, wire: Wire) -> Self {
        Self { wire, overflowed: Arc::default(), ..self.clone() }
    }

    async fn post(
        &self,
        request: RequestBuilder,
        message: &ClientJsonRpcMessage,
        in_session: bool,
    ) -> Outcome<StreamableHttpPostResponse> {
        let response = request
            .header(ACCEPT, format!("{JSON}, {EVENT_STREAM}"))
            .json(message)
            .send()
            .await
            .map_err(|error| StreamableHttpError::Client(unanswered(&error)))?;
        let status = response.status();
        let asked = match message {
            JsonRpcMessage::Request(request) => request,
            // Nothing but the status is of interest.
            _ if status.is_success() => return Ok(StreamableHttpPostResponse::Accepted),
            _ => return Err(broken(format!("it answered HTTP {}", status.as_u16()))),
        };
        if !status.is_success() {
            return self.refused(response, asked, in_session).await;
        }
        let session = header(&response, SESSION_ID);
        match header(&response, CONTENT_TYPE.as_str()).unwrap_or_default() {
            kind if kind.starts_with(EVENT_STREAM) => {
                Ok(StreamableHttpPostResponse::Sse(self.events(response, Some(asked.id.clone())), session))
            }
            kind if kind.starts_with(JSON) => {
                let body = http::read_bounded(response, MAX_BODY).await.map_err(|error| broken(error.to_string()))?;
                let body = std::str::from_utf8(&body)
                    .map_err(|error| broken(format!("its answer cannot be read: {error}")))?;
                let text = mend::read(body, &self.redactor);
                let answer = serde_json::from_str(&text)
                    .map_err(|error| broken(format!("its answer cannot be read: {error}: {}", self.quote(&text))))?;
                answers(&answer, asked)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            kind => {
                let kind = self.redactor.quote(&kind, MAX_QUOTE);
                Err(broken(format!("it answered HTTP {} with a body of type `{kind}`", status.as_u16())))
            }
        }
    }

    /// The events of a response, up to [`MAX_BODY`]; what breaks them is noted for the request that they answer.
    fn events(&self, response: Response, id: Option<RequestId>) -> Events {
        let (wire, overflowed) = (self.wire.clone(), self.overflowed.clone());
        let mut left = MAX_BODY;
        let (heard, on) = (self.wire.clone(), id.clone());
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| format!("its answer was cut off: {}", cause(&error))).and_then(|chunk| {
                left = left.checked_sub(chunk.len()).ok_or_else(|| {
                    overflowed.store(true, Ordering::Relaxed);
                    format!("its answer is larger than {MAX_BODY} bytes")
                })?;
                Ok(chunk)
            });
            chunk.map_err(|why| {
                if let Some(id) = &id {
                    wire.note(id, Fate::Broken(why.clone()));
                }
                Error::Broken(why)
            })
        });
        let redactor = self.redactor.clone();
        let events = SseStream::from_bytes_stream(bytes).map_ok(move |event| {
            let data = event.data.map(|data| mend::read(&data, &redactor).into_owned());
            Sse { data, ..event }
        });
        let hear = move |event: &Result<Sse, SseError>| {
            let Ok(event) = event else { return };
            if let (Some(on), Some(number)) = (&on, &event.id) {
                heard.read_to(on, number);
            }
            if let Some(news) = event.data.as_deref().and_then(news::read) {
                heard.hear(on.as_ref(), news);
            }
        };
        events.inspect(hear).boxed()
    }

    /// Sorts a refusal: an error that names this request is its answer; the rest says nothing of what happened.
    async fn refused(
        &self,
        response: Response,
        asked: &Asked,
        in_session: bool,
    ) -> Outcome<StreamableHttpPostResponse> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if let Some(to) = location(&response) {
            self.wire.note_final();
            let to = self.redactor.quote(&to, MAX_QUOTE);
            let how = "redirects are not followed: name the server by the address that it has";
            return Err(broken(format!("it answered HTTP {}, which points to {to}, and {how}", status.as_u16())));
        }
        let body = http::read_bounded(response, MAX_REFUSAL).await.unwrap_or_default();
        let is_text = std::str::from_utf8(&body).is_ok();
        let body = self.redactor.json_bytes(&body);
        let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if unauthorized && self.is_without_credentials {
            self.wire.note_final();
        }
        if status.is_client_error() && !unauthorized {
            let read = |text: &str| serde_json::from_str::<ServerJsonRpcMessage>(text).ok().filter(|_| is_text);
            if !in_session && matches!(asked.request, ClientRequest::DiscoverRequest(_)) {
                return Ok(StreamableHttpPostResponse::Json(older(read(&body), asked, status), None));
            }
            if let Some(answer @ JsonRpcMessage::Error(_)) = read(&mended(Cow::Borrowed(&*body)))
                && answers(&answer, asked).is_ok()
            {
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
        Err(broken(format!("it answered HTTP {}: {}", status.as_u16(), self.quote(&body))))
    }

    fn quote(&self, text: &str) -> String {
        match self.redactor.quote(text, MAX_QUOTE) {
            quote if quote.is_empty() => "an empty body".to_owned(),
            quote => quote,
        }
    }
}

impl StreamableHttpClient for Transport {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<StreamableHttpPostResponse> {
        let (id, token) = wire::of_request(&message);
        if id.as_ref().is_some_and(|id| !self.wire.begin(id, token)) {
            return Err(StreamableHttpError::Client(Error::Unsent("it was given up".to_owned())));
        }
        let in_session = session_id.is_some();
        if in_session {
            self.wire.note_state();
        }
        let request = with_headers(self.http.post(uri.as_ref()), session_id.as_deref(), custom_headers);
        // On the heap: the future of a request is large, and rmcp wraps it several times.
        let outcome = self.post(request, &message, in_session).boxed().await;
        if let (Some(id), Err(error)) = (&id, &outcome) {
            self.wire.note(id, fate(error));
        }
        outcome
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<()> {
        let request = with_headers(self.http.delete(uri.as_ref()), Some(&*session_id), custom_headers);
        // Not every server lets a client end a session; whatever it answers, we are done with it.
        let sent = request.timeout(CLOSE_TIMEOUT).send().await;
        sent.map(drop).map_err(|error| StreamableHttpError::Client(unanswered(&error)))
    }

    /// Resumes a stream. The other use of GET, a stream for whatever the server wants to say, is declined: we have
    /// no use for it, and it would cost a connection a session.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<Events> {
        let Some(last) = last_event_id.filter(|_| !self.overflowed.load(Ordering::Relaxed)) else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        let of = self.wire.of_event(&last);
        tokio::time::sleep(RESUME_PAUSE).await;
        let request = with_headers(self.http.get(uri.as_ref()), session_id.as_deref(), custom_headers)
            .header(LAST_EVENT_ID, last)
            .header(ACCEPT, EVENT_STREAM);
        let response = request.send().await.map_err(|error| StreamableHttpError::Client(unanswered(&error)))?;
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        match response.status() {
            status if status.is_success() && kind.starts_with(EVENT_STREAM) => Ok(self.events(response, of)),
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(broken(format!("it answered HTTP {}", status.as_u16()))),
        }
    }
}

fn with_headers(
    mut request: RequestBuilder,
    session: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match session {
        Some(session) => request.header(SESSION_ID, session),
        None => request,
    }
}

type Asked = rmcp::model::JsonRpcRequest<ClientRequest>;

/// What a server of the older era says to a request that it does not know, in the form that rmcp falls back on.
fn older(answer: Option<ServerJsonRpcMessage>, asked: &Asked, status: StatusCode) -> ServerJsonRpcMessage {
    let error = match answer {
        Some(JsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {}", status.as_u16()), None),
    };
    ServerJsonRpcMessage::error(error, Some(asked.id.clone()))
}

/// Whether a message answers what was asked. Only while a session begins may an error come without the id.
fn answers(answer: &ServerJsonRpcMessage, asked: &Asked) -> Outcome<()> {
    let begins = matches!(asked.request, ClientRequest::DiscoverRequest(_) | ClientRequest::InitializeRequest(_));
    let id = match answer {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) if error.id.is_none() && begins => return Ok(()),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    match id {
        // Some servers make a text of the number.
        Some(id) if id.to_string() == asked.id.to_string() => Ok(()),
        Some(id) => Err(broken(format!("it answered the request {id}, and {} was asked", asked.id))),
        None => Err(broken("its answer names no request".to_owned())),
    }
}

/// Where a redirect points to.
fn location(response: &Response) -> Option<String> {
    let to = header(response, LOCATION.as_str()).filter(|_| response.status().is_redirection())?;
    Some(response.url().join(&to).map_or(to, String::from))
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}
