//! A session with a server. It begins in the newer era of the protocol if the server supports it, or else in the older era.

use crate::delivery::{Delivery, DeliveryLog, Retry};
use crate::http_transport::HttpTransport;
use crate::known_tools::KnownTools;
use crate::program::Program;
use crate::stdio::{Process, StdioTransport};
use bloomery_engine::event::ToolProgress;
use bloomery_http::progress::ProgressObserver;
use bloomery_redact::Redactor;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, ErrorCode, ErrorData, Implementation, ProtocolVersion,
    RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RequestContext, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

/// The longest time to begin a session. In the newer era, rmcp waits 10 s for an answer before it tries the older era.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of sending a cancellation.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest number of consecutive failed attempts to resume a stream.
const MAX_RESUMES: usize = 5;

/// The error codes with which a server refuses a request of another era or version of the protocol.
const PROTOCOL_ERRORS: [ErrorCode; 6] = [
    ErrorCode::INVALID_REQUEST,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
    ErrorCode::HEADER_MISMATCH,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
];

/// The reason of [`Reply::SessionUnknown`], as a clause.
pub(crate) const SESSION_UNKNOWN: &str = "it has ended the session (HTTP 404)";

/// The reason that no session begins with a server of the older transport, and the remedy, as a clause.
const OLDER_TRANSPORT: &str = "it only has the transport HTTP+SSE of MCP 2024-11-05, which the worker does not support: update the server \
     to one with streamable HTTP, or put a bridge before it";

/// The server of a session.
#[derive(Debug)]
pub(crate) enum Server {
    /// A server at a URL.
    Remote {
        /// The transport to the server.
        transport: HttpTransport,
        /// The streamable HTTP endpoint of the server.
        url: Arc<str>,
    },
    /// A program that is started for each session.
    Program {
        /// The program.
        program: Program,
        /// Redacts the output of the program.
        redactor: Redactor,
        /// The size limit of an answer, in bytes.
        max_answer: usize,
    },
}

impl Server {
    /// Waits until the server can be asked: until there is a token for it, if it needs one. At the longest until `until`.
    pub(crate) async fn wait(&self, until: Instant) {
        if let Self::Remote { transport, .. } = self {
            transport.wait(until).await;
        }
    }
}

/// The reply to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The server answered.
    Result(Box<ServerResult>),
    /// The server answered with an error.
    Error(ErrorData),
    /// No byte of the request was sent. Holds the reason as a clause.
    NotSent(String),
    /// The server answered that it has not applied the request. Holds the reason as a clause.
    Unauthorized(String),
    /// The request was sent, or may have been, and there is no answer. Holds the reason as a clause.
    Unknown(String),
    /// The server answered that it does not know the session. It has not run the request if it then begins a session.
    SessionUnknown,
}

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Versions whose sessions begin with `initialize`.
    Older,
    /// Versions without sessions.
    Newer,
}

impl Era {
    /// Returns the era that is tried first with a server of unknown era (`docs/explanation/mcp.md`).
    fn first_with(server: &Server) -> Self {
        match server {
            Server::Remote { .. } => Self::Newer,
            Server::Program { .. } => Self::Older,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Older => Self::Newer,
            Self::Newer => Self::Older,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Older => ClientLifecycleMode::Initialize,
            Self::Newer => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        }
    }
}

/// The reason that no session began.
#[derive(Debug)]
pub(crate) struct Error {
    /// The reason, as a clause.
    pub(crate) reason: String,
    /// When a retry may succeed.
    pub(crate) retry: Retry,
}

/// Answers requests of the server. The client identifies itself, and offers no capabilities.
#[derive(Debug)]
struct RequestHandler(ClientConfig);

impl ClientHandler for RequestHandler {
    fn get_info(&self) -> ClientConfig {
        self.0.clone()
    }

    // Declines the request for roots, which servers of the older era may send. By default, rmcp would answer with an empty list.
    #[expect(deprecated, reason = "declining a request takes its type")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }
}

/// A session. Requests do not depend on its state, so any request can be sent in a new session.
#[derive(Debug)]
pub(crate) struct Session {
    service: RunningService<RoleClient, RequestHandler>,
    deliveries: DeliveryLog,
    pub(crate) known_tools: Mutex<KnownTools>,
}

impl Session {
    /// Begins a session. `era` is the era of the last session. If the server does not begin a session in one era, the other is tried,
    /// unless the time is over. Neither request has a side effect. A program that ends, or cannot be started, in the older era is not
    /// started again: programs of the newer era answer a request of the older one with an error.
    pub(crate) async fn begin(
        server: &Server,
        era: Option<Era>,
        until: Instant,
        observer: &ProgressObserver,
    ) -> Result<Self, Error> {
        let until = until.min(Instant::now() + BEGIN_TIMEOUT);
        let first = era.unwrap_or_else(|| Era::first_with(server));
        let mut begun = Self::begin_as(first, server, until, observer).await;
        let has_ended = matches!((&begun, server), (Err(Error { retry: Retry::Never, .. }), Server::Program { .. }));
        if begun.is_err() && !(has_ended && first == Era::Older) && Instant::now() < until {
            begun = Self::begin_as(first.other(), server, until, observer).await;
        }
        match (begun, server) {
            (Err(Error { retry: Retry::Soon, .. }), Server::Remote { transport, url })
                if timeout_at(until, transport.has_older_transport(url)).await == Ok(true) =>
            {
                Err(Error { reason: OLDER_TRANSPORT.to_owned(), retry: Retry::Never })
            }
            (begun, _) => begun,
        }
    }

    async fn begin_as(era: Era, server: &Server, until: Instant, observer: &ProgressObserver) -> Result<Self, Error> {
        let lifecycle = era.lifecycle();
        let deliveries = DeliveryLog::with_observer(observer);
        // The client has no capabilities, so a server has nothing to request. The handler declines any request.
        let info = Implementation::new("bloomery-worker", env!("CARGO_PKG_VERSION"));
        let handler = RequestHandler(
            ClientConfig::new(ClientCapabilities::default(), info)
                .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE),
        );
        let mut process = None;
        let begun = match server {
            Server::Remote { transport, url } => {
                let transport = transport.for_session(deliveries.clone());
                let transport = StreamableHttpClientTransport::with_client(transport, transport_config(url.clone()));
                timeout_at(until, handler.serve_with_lifecycle(transport, lifecycle)).await
            }
            Server::Program { program, redactor, max_answer } => {
                let transport = StdioTransport::start(program, deliveries.clone(), redactor.clone(), *max_answer)
                    .map_err(|error| Error { reason: error.to_string(), retry: Retry::Never })?;
                process = Some(transport.process());
                timeout_at(until, handler.serve_with_lifecycle(transport, lifecycle)).await
            }
        };
        let reason = match begun {
            Ok(Ok(service)) => return Ok(Self { service, deliveries, known_tools: Mutex::default() }),
            Ok(Err(error)) => deliveries.last_error().unwrap_or_else(|| describe_begin_error(&error, server)),
            Err(_) => "it did not begin a session in time".to_owned(),
        };
        let retry = deliveries.retry();
        Err(program_ended(process).await.unwrap_or(Error { reason, retry }))
    }

    /// Adds the record of the tools.
    pub(crate) fn with_known_tools(self, known_tools: KnownTools) -> Self {
        Self { known_tools: Mutex::new(known_tools), ..self }
    }

    /// Returns whether requests can still be sent.
    pub(crate) fn is_alive(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Sends a request, and waits for its answer until `until`. `listener` receives progress. At the timeout, the client asks the server
    /// to cancel the request.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        meta: RequestMetaObject,
        until: Instant,
        listener: &dyn Fn(ToolProgress),
    ) -> Reply {
        let options = PeerRequestOptions::with_timeout(until.saturating_duration_since(Instant::now())).with_meta(meta);
        let handle = match self.service.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Reply::NotSent(format!("the session has ended: {error}")),
        };
        let id = handle.id.clone();
        let mut answered = pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answered => break answer,
                // rmcp does not handle a cancellation by the server.
                () = self.deliveries.cancelled(&id) => break Err(ServiceError::Cancelled { reason: None }),
                progress = self.deliveries.take_progress(&id) => progress.into_iter().for_each(listener),
            }
        };
        let (delivery, progress) = self.deliveries.finish(&id);
        progress.into_iter().for_each(listener);
        classify_answer(answer, delivery)
    }

    /// Returns the records of the requests.
    pub(crate) fn deliveries(&self) -> &DeliveryLog {
        &self.deliveries
    }

    /// Returns the era of the session. In the newer era, a tool's schema may require that rmcp sends arguments as headers, and rmcp only
    /// knows the schemas that were listed in the same session.
    pub(crate) fn era(&self) -> Era {
        match self.service.peer_info() {
            Some(server) if !server.protocol_version.has_initialize() => Era::Newer,
            _ => Era::Older,
        }
    }

    /// Returns whether a reply may mean that the server was restarted in another era. This only applies if the server keeps no state for
    /// the session, because then a new session costs little.
    pub(crate) fn is_outdated_by(&self, reply: &Reply) -> bool {
        let Reply::Error(error) = reply else { return false };
        PROTOCOL_ERRORS.contains(&error.code) && !self.deliveries.has_server_state()
    }

    /// Ends the session. A server that keeps state for the session is informed.
    pub(crate) async fn close(mut self) {
        let _ = self.service.close_with_timeout(CONTROL_TIMEOUT).await;
    }
}

/// Returns the error for a program that ended. Returns `None` if the program runs, or the server is not a program.
async fn program_ended(process: Option<Process>) -> Option<Error> {
    let reason = process?.exit_description().await?;
    Some(Error { reason, retry: Retry::Never })
}

/// Returns the reply that an answer of rmcp and the recorded delivery prove.
fn classify_answer(answer: Result<ServerResult, ServiceError>, delivery: Delivery) -> Reply {
    match answer {
        Ok(result) => Reply::Result(Box::new(result)),
        // This is an error of the server. Errors of rmcp itself have other variants.
        Err(ServiceError::McpError(error)) => Reply::Error(error),
        Err(error) => match delivery {
            Delivery::NotSent(reason) => Reply::NotSent(reason),
            Delivery::Unauthorized(reason) => Reply::Unauthorized(reason),
            Delivery::Broken(reason) => Reply::Unknown(reason),
            Delivery::SessionUnknown => Reply::SessionUnknown,
            Delivery::Sent => Reply::Unknown(match error {
                // A part of the timeout may have passed before rmcp received it.
                ServiceError::Timeout { timeout } => {
                    format!("it did not answer within {} s", timeout.as_secs_f64().ceil())
                }
                ServiceError::TransportClosed => "its answer ended before the result".to_owned(),
                other => other.to_string(),
            }),
        },
    }
}

fn transport_config(url: Arc<str>) -> StreamableHttpClientTransportConfig {
    let mut resumes = ExponentialBackoff::default();
    resumes.max_times = Some(MAX_RESUMES);
    resumes.max_delay = Some(Duration::from_secs(5));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        // By default, rmcp would send a request again if its session has expired.
        .reinit_on_expired_session(false)
        .control_request_timeout(CONTROL_TIMEOUT);
    config.retry_config = Arc::new(resumes);
    config
}

fn describe_begin_error(error: &ClientInitializeError, server: &Server) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refused a session: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it supports no MCP version that the worker supports".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe_begin_error(fallback, server),
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        _ => match server {
            Server::Remote { .. } => "it does not speak MCP over streamable HTTP".to_owned(),
            Server::Program { .. } => "it does not speak MCP over its standard input and output".to_owned(),
        },
    }
}
