//! The HTTP transport of rmcp. It records in the [`DeliveryLog`] whether each request was sent.
//!
//! Every body is bounded, and no request is sent twice. If the server numbers its events, a stream whose connection was lost is
//! resumed. Resuming only requests the rest of an answer. It does not repeat the call.

mod events;

use crate::access::Access;
use crate::delivery::{self, DeliveryLog, Retry};
use crate::limits::DEFAULT_ANSWER_BYTES;
use crate::older_transport;
use crate::oversized;
use crate::repair::{self, repaired};
use crate::transport_error::{self, Error, broken};
use bloomery_http::body::{self, Body};
use bloomery_redact::Redactor;
use futures::FutureExt;
use futures::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The header of a response of the bridge to a request that has not reached the server.
const NOT_DELIVERED: &str = "bloomery-not-delivered";

/// The largest error response that is read, in bytes. A larger one counts as empty.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The longest quote of a response in an error message, in bytes.
const MAX_QUOTE_BYTES: usize = 300;

/// The shortest time between two requests to resume a stream. A server may request no delay, many times in a row.
const MIN_RESUME_INTERVAL: Duration = Duration::from_millis(200);

/// The timeout of the request that ends a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

type Outcome<T> = Result<T, StreamableHttpError<Error>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP transport of a session.
#[derive(Debug, Clone)]
pub(crate) struct HttpTransport {
    access: Access,
    redactor: Redactor,
    deliveries: DeliveryLog,
    /// The size limit of an answer, in bytes: of a body, or of all events of a stream.
    max_answer: usize,
    /// The requests whose streams exceeded the limit and therefore must not be resumed.
    overflowed: Arc<Mutex<HashSet<RequestId>>>,
    /// The earliest time of the next request to resume a stream.
    next_resume: Arc<Mutex<Option<Instant>>>,
}

impl HttpTransport {
    /// Creates a transport without a session. It redacts everything that it reads.
    pub(crate) fn new(access: Access, redactor: Redactor) -> Self {
        Self {
            access,
            redactor,
            deliveries: DeliveryLog::default(),
            max_answer: DEFAULT_ANSWER_BYTES,
            overflowed: Arc::default(),
            next_resume: Arc::default(),
        }
    }

    /// Treats a server that requires credentials as unusable: a retry would get the same answer.
    pub(crate) fn without_credentials(self) -> Self {
        Self { access: self.access.without_credentials(), ..self }
    }

    /// Sets the size limit of an answer, in bytes.
    pub(crate) fn with_max_answer(self, max_answer: usize) -> Self {
        Self { max_answer, ..self }
    }

    /// Returns whether the server opens a stream of the older transport HTTP+SSE at `url`, or at the path that SDKs used for it.
    pub(crate) async fn has_older_transport(&self, url: &str) -> bool {
        match self.access.open() {
            Ok((http, headers)) => older_transport::is_at(&http, &headers, url).await,
            Err(_) => false,
        }
    }

    /// Waits until there is a token for the server, if it needs one. At the longest until `until`.
    pub(crate) async fn wait(&self, until: Instant) {
        self.access.wait(until).await;
    }

    /// Returns the client and the headers of the next request.
    fn open(&self) -> Result<(reqwest::Client, HeaderMap), StreamableHttpError<Error>> {
        self.access.open().map_err(|reason| {
            // The operator renews a token soon. Other credentials are a person's.
            if !self.access.is_with_token() {
                self.deliveries.record_retry(Retry::AfterCorrection);
            }
            StreamableHttpError::Client(Error::NotSent(reason))
        })
    }

    /// Returns a transport for a new session.
    pub(crate) fn for_session(&self, deliveries: DeliveryLog) -> Self {
        Self { deliveries, overflowed: Arc::default(), next_resume: Arc::default(), ..self.clone() }
    }

    async fn post(
        &self,
        builder: RequestBuilder,
        message: &ClientJsonRpcMessage,
        in_session: bool,
    ) -> Outcome<StreamableHttpPostResponse> {
        let response = builder
            .header(ACCEPT, format!("{JSON}, {EVENT_STREAM}"))
            .json(message)
            .send()
            .await
            .map_err(|error| StreamableHttpError::Client(Error::from(&error)))?;
        let status = response.status();
        let request = match message {
            JsonRpcMessage::Request(request) => request,
            // A message of another kind has no answer, so only the status matters.
            _ if status.is_success() => return Ok(StreamableHttpPostResponse::Accepted),
            _ => {
                let body = body::read(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
                return Err(self.refused(status, &self.redactor.redact_json_bytes(&body)));
            }
        };
        if !status.is_success() {
            return self.handle_refusal(response, request, in_session).await;
        }
        let session = header(&response, SESSION_ID);
        match header(&response, CONTENT_TYPE.as_str()).unwrap_or_default() {
            kind if kind.starts_with(EVENT_STREAM) => {
                Ok(StreamableHttpPostResponse::Sse(self.events(response, Some(request.id.clone())), session))
            }
            kind if kind.starts_with(JSON) => {
                let read = body::read_or_begin(response, self.max_answer, oversized::SHOWN_BYTES).await;
                let body = match read.map_err(|error| broken(error.to_string()))? {
                    Body::Whole(body) => body,
                    Body::Beginning(beginning) => oversized::answer_to(&request.id, &beginning, self.max_answer)
                        .map(String::into_bytes)
                        .ok_or_else(|| broken(format!("its answer is larger than {} bytes", self.max_answer)))?,
                };
                let body = std::str::from_utf8(&body)
                    .map_err(|error| broken(format!("its answer cannot be read: {error}")))?;
                let text = repair::read(body, &self.redactor);
                let answer = serde_json::from_str(&text)
                    .map_err(|error| broken(format!("its answer cannot be read: {error}: {}", self.quote(&text))))?;
                check_answers(&answer, request)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            kind => {
                let kind = self.redactor.quote(&kind, MAX_QUOTE_BYTES);
                Err(broken(format!("it answered HTTP {} with a body of type `{kind}`", status.as_u16())))
            }
        }
    }

    /// Handles an error response. A JSON-RPC error with the id of the request answers the request. Any other response proves nothing.
    async fn handle_refusal(
        &self,
        response: Response,
        request: &Request,
        in_session: bool,
    ) -> Outcome<StreamableHttpPostResponse> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if let Some(to) = location(&response) {
            self.deliveries.record_retry(Retry::Never);
            let to = self.redactor.quote(&to, MAX_QUOTE_BYTES);
            let hint = "redirects are not followed: set the URL of the server to its final address";
            return Err(broken(format!("it redirects to {to} (HTTP {}), and {hint}", status.as_u16())));
        }
        let is_undelivered = self.access.is_behind_bridge() && response.headers().contains_key(NOT_DELIVERED);
        let body = body::read(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let is_text = std::str::from_utf8(&body).is_ok();
        let body = self.redactor.redact_json_bytes(&body);
        if is_undelivered {
            let reason = format!("it answered HTTP {}: {}", status.as_u16(), self.quote(&body));
            return Err(StreamableHttpError::Client(Error::NotSent(reason)));
        }
        if status.is_client_error() && !refuses_credentials(status) {
            let read = |text: &str| serde_json::from_str::<ServerJsonRpcMessage>(text).ok().filter(|_| is_text);
            if !in_session && matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                return Ok(StreamableHttpPostResponse::Json(unknown_request(read(&body), request, status), None));
            }
            if let Some(answer @ JsonRpcMessage::Error(_)) = read(&repaired(Cow::Borrowed(&*body)))
                && check_answers(&answer, request).is_ok()
            {
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
        Err(self.refused(status, &body))
    }

    /// Returns the error for an error response with a redacted body. If the server refuses the credentials, adds the remedy, and records
    /// when a retry may get another answer. By RFC 9110, a request with the response 401 has not been applied. This is not certain for
    /// 403, which a proxy may also send in the place of a response that it does not let pass.
    fn refused(&self, status: StatusCode, body: &str) -> StreamableHttpError<Error> {
        let mut reason = format!("it answered HTTP {}: {}", status.as_u16(), self.quote(body));
        if refuses_credentials(status) {
            self.deliveries.record_retry(self.access.retry_after_refusal());
            let stop = if reason.ends_with(['.', '!', '?', '…']) { "" } else { "." };
            reason = format!("{reason}{stop} {}", self.access.remedy());
        }
        StreamableHttpError::Client(match status {
            StatusCode::UNAUTHORIZED => Error::Unauthorized(reason),
            _ => Error::Broken(reason),
        })
    }

    /// Reserves the time of the next request to resume a stream, and returns it. Before, rmcp has waited as long as the server asked.
    fn reserve_resume(&self) -> Instant {
        let mut next = self.next_resume.lock().unwrap_or_else(PoisonError::into_inner);
        let time = next.unwrap_or_else(Instant::now).max(Instant::now());
        *next = Some(time + MIN_RESUME_INTERVAL);
        time
    }

    fn quote(&self, text: &str) -> String {
        match self.redactor.quote(text, MAX_QUOTE_BYTES) {
            quote if quote.is_empty() => "an empty body".to_owned(),
            quote => quote,
        }
    }
}

impl StreamableHttpClient for HttpTransport {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<StreamableHttpPostResponse> {
        let (id, token) = delivery::request_ids(&message);
        if id.as_ref().is_some_and(|id| !self.deliveries.begin(id, token)) {
            return Err(StreamableHttpError::Client(Error::NotSent(
                "the call was abandoned before it was sent".to_owned(),
            )));
        }
        let in_session = session_id.is_some();
        if in_session {
            self.deliveries.record_server_state();
        }
        let outcome = match self.open() {
            Ok((http, headers)) => {
                let request = with_headers(http.post(uri.as_ref()), session_id.as_deref(), custom_headers);
                // Boxed: the future of a request is large, and rmcp wraps it several times.
                self.post(request.headers(headers), &message, in_session).boxed().await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome {
            self.deliveries.record(id.as_ref(), transport_error::delivery(error));
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
        let (http, headers) = self.open()?;
        let request = with_headers(http.delete(uri.as_ref()), Some(&*session_id), custom_headers).headers(headers);
        // Not every server allows clients to end a session, so the status does not matter.
        let sent = request.timeout(CLOSE_TIMEOUT).send().await;
        sent.map(drop).map_err(|error| StreamableHttpError::Client(Error::from(&error)))
    }

    /// Resumes a stream. GET can also open a stream for unsolicited messages. That use is declined, because it costs one connection per
    /// session and the client does not need such messages.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<Events> {
        let Some(last) = last_event_id else { return Err(StreamableHttpError::ServerDoesNotSupportSse) };
        let id = self.deliveries.request_of_event(&last);
        if id.as_ref().is_some_and(|id| self.has_overflowed(id)) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        tokio::time::sleep_until(self.reserve_resume()).await;
        let (http, headers) = self.open()?;
        let request = with_headers(http.get(uri.as_ref()), session_id.as_deref(), custom_headers)
            .headers(headers)
            .header(LAST_EVENT_ID, last)
            .header(ACCEPT, EVENT_STREAM);
        let response = request.send().await.map_err(|error| StreamableHttpError::Client(Error::from(&error)))?;
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        match response.status() {
            status if status.is_success() && kind.starts_with(EVENT_STREAM) => Ok(self.events(response, id)),
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(broken(format!("it answered HTTP {}", status.as_u16()))),
        }
    }
}

/// Returns whether a server with this response requires credentials, or does not accept those of the request.
fn refuses_credentials(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
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

type Request = rmcp::model::JsonRpcRequest<ClientRequest>;

/// Converts the answer of an older-era server to an unknown request into the form that rmcp recognizes.
fn unknown_request(
    answer: Option<ServerJsonRpcMessage>,
    request: &Request,
    status: StatusCode,
) -> ServerJsonRpcMessage {
    let error = match answer {
        Some(JsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {}", status.as_u16()), None),
    };
    ServerJsonRpcMessage::error(error, Some(request.id.clone()))
}

/// Checks that a message answers a request. Only while a session begins, an error may omit the id.
fn check_answers(answer: &ServerJsonRpcMessage, request: &Request) -> Outcome<()> {
    let begins = matches!(request.request, ClientRequest::DiscoverRequest(_) | ClientRequest::InitializeRequest(_));
    let id = match answer {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) if error.id.is_none() && begins => return Ok(()),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    match id {
        // Some servers return a numeric id as a string.
        Some(id) if id.to_string() == request.id.to_string() => Ok(()),
        Some(id) => Err(broken(format!("it answered the request {id} instead of the request {}", request.id))),
        None => Err(broken("its answer has no request id".to_owned())),
    }
}

/// Returns the target of a redirect.
fn location(response: &Response) -> Option<String> {
    let to = header(response, LOCATION.as_str()).filter(|_| response.status().is_redirection())?;
    Some(response.url().join(&to).map_or(to, String::from))
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}
