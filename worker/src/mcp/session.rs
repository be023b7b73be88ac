//! One session with a server: how it begins, and how one request is asked in it.

use super::listing::Listing;
use super::stdio::{Process, Program, Stdio};
use super::transport::Transport;
use super::wire::{Fate, Wire};
use crate::progress::Onlooker;
use bloomery_engine::event::ToolProgress;
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

/// How long a session may take to begin: rmcp asks for the newer era first, and waits 10 s for its answer.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a notice that a call is given up may take.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a stream is resumed in a row without success.
const MAX_RESUMES: usize = 5;

/// The codes by which servers refuse a request whose form they do not know.
const OF_THE_PROTOCOL: [ErrorCode; 6] = [
    ErrorCode::INVALID_REQUEST,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
    ErrorCode::HEADER_MISMATCH,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
];

/// Where a session is begun.
#[derive(Debug)]
pub(super) enum Server {
    /// At an address.
    Remote {
        /// Speaks to it.
        transport: Transport,
        /// Its streamable HTTP endpoint.
        url: Arc<str>,
    },
    /// In a program that is started for it, and read without secrets.
    Program(Program, Redactor),
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// The server has answered.
    Result(Box<ServerResult>),
    /// The server has answered with an error.
    Error(ErrorData),
    /// No byte of it has left us.
    Unsent(String),
    /// It was sent, or may have been, and there is no answer.
    Unknown(String),
}

/// Why a session did not begin.
enum Unbegun {
    /// The server speaks other versions than the one it was asked for.
    OlderOnly,
    /// Anything else.
    Failed(NotBegun),
}

/// Why there is no session, as the end of a sentence.
#[derive(Debug)]
pub(super) struct NotBegun {
    pub(super) why: String,
    /// Another try would come to the same: the server is a program that cannot be started, or that ends; or it is
    /// elsewhere, or wants credentials where there are none.
    pub(super) is_final: bool,
}

impl From<String> for NotBegun {
    fn from(why: String) -> Self {
        Self { why, is_final: false }
    }
}

/// What a server finds where it asks something of us: who we are, and that we have nothing to give.
#[derive(Debug)]
struct Us(ClientConfig);

impl ClientHandler for Us {
    fn get_info(&self) -> ClientConfig {
        self.0.clone()
    }

    // rmcp would say that there are roots, and none of them. Servers of the older era may still ask.
    #[expect(deprecated, reason = "who declines has to name it")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }
}

/// A session. It has no state of ours: any request can be asked in a new one.
#[derive(Debug)]
pub(super) struct Session {
    service: RunningService<RoleClient, Us>,
    wire: Wire,
    pub(super) listing: Mutex<Listing>,
}

impl Session {
    /// Begins a session, of the newer era where the server speaks it.
    pub(super) async fn begin(
        server: &Server,
        until: Instant,
        listing: Listing,
        onlooker: &Onlooker,
    ) -> Result<Self, NotBegun> {
        let until = until.min(Instant::now() + BEGIN_TIMEOUT);
        let newer = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match Self::begin_as(newer, server, until, onlooker).await {
            // rmcp falls back on the older era only where a server does not know the question, not where it
            // answers it with older versions. And some programs of that era end at the question.
            Err(Unbegun::OlderOnly | Unbegun::Failed(NotBegun { is_final: true, .. })) => {
                Self::begin_as(ClientLifecycleMode::Initialize, server, until, onlooker).await
            }
            begun => begun,
        }
        .map(|begun| Self { listing: Mutex::new(listing), ..begun })
        .map_err(|unbegun| match unbegun {
            Unbegun::OlderOnly => "it speaks no version of MCP that we do".to_owned().into(),
            Unbegun::Failed(why) => why,
        })
    }

    async fn begin_as(
        lifecycle: ClientLifecycleMode,
        server: &Server,
        until: Instant,
        onlooker: &Onlooker,
    ) -> Result<Self, Unbegun> {
        let wire = Wire::seen_by(onlooker);
        // No capabilities: a server has nothing to ask of us, and is declined where it does all the same.
        let info = Implementation::new("bloomery-worker", env!("CARGO_PKG_VERSION"));
        let us = Us(ClientConfig::new(ClientCapabilities::default(), info)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE));
        let mut process = None;
        let begun = match server {
            Server::Remote { transport, url } => {
                let transport = transport.of_session(wire.clone());
                let transport = StreamableHttpClientTransport::with_client(transport, config(url.clone()));
                timeout_at(until, us.serve_with_lifecycle(transport, lifecycle)).await
            }
            Server::Program(program, redactor) => {
                let transport = Stdio::start(program, wire.clone(), redactor.clone())
                    .map_err(|why| Unbegun::Failed(NotBegun { why, is_final: true }))?;
                process = Some(transport.process());
                timeout_at(until, us.serve_with_lifecycle(transport, lifecycle)).await
            }
        };
        let why = match begun {
            Ok(Ok(service)) => return Ok(Self { service, wire, listing: Mutex::default() }),
            Ok(Err(ClientInitializeError::NoCompatibleProtocolVersion { .. })) => return Err(Unbegun::OlderOnly),
            Ok(Err(error)) => wire.last_trouble().unwrap_or_else(|| reason(&error, server)),
            Err(_) => "it did not begin a session in time".to_owned(),
        };
        let is_final = wire.is_final();
        Err(Unbegun::Failed(ended(process).await.unwrap_or(NotBegun { why, is_final })))
    }

    /// Whether requests can still be asked.
    pub(super) fn is_alive(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Asks one request and waits for its answer; who listens hears what its server tells meanwhile. One that is late is
    /// given up, and the server told so.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        meta: RequestMetaObject,
        until: Instant,
        listener: &dyn Fn(ToolProgress),
    ) -> Reply {
        let options = PeerRequestOptions::with_timeout(until.saturating_duration_since(Instant::now())).with_meta(meta);
        let handle = match self.service.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Reply::Unsent(format!("the session is over: {error}")),
        };
        let id = handle.id.clone();
        let mut answered = pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answered => break answer,
                // rmcp knows of no such thing for a request like ours.
                () = self.wire.cancelled(&id) => break Err(ServiceError::Cancelled { reason: None }),
                told = self.wire.told(&id) => told.into_iter().for_each(listener),
            }
        };
        let (fate, told) = self.wire.give_up(&id);
        told.into_iter().for_each(listener);
        reply(answer, fate)
    }

    /// The notes on what is under way.
    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Whether it is of the newer era. There, rmcp makes headers of arguments that a tool's schema marks, and it knows a
    /// schema only from a list in the same session.
    pub(super) fn is_newer(&self) -> bool {
        self.service.peer_info().is_some_and(|server| !server.protocol_version.has_initialize())
    }

    /// Whether a reply may mean that the server does not speak as it did when the session began: started anew, it may be
    /// of another era. Where it keeps nothing of a session, another one costs little.
    pub(super) fn is_doubtful_after(&self, reply: &Reply) -> bool {
        let Reply::Error(error) = reply else { return false };
        OF_THE_PROTOCOL.contains(&error.code) && !self.wire.keeps_state()
    }

    /// Ends the session at the server, where it keeps one.
    pub(super) async fn close(mut self) {
        let _ = self.service.close_with_timeout(CONTROL_TIMEOUT).await;
    }
}

/// Why there is no session where the server is a program that has ended.
async fn ended(process: Option<Process>) -> Option<NotBegun> {
    let why = process?.obituary().await?;
    Some(NotBegun { why, is_final: true })
}

fn reply(answer: Result<ServerResult, ServiceError>, fate: Fate) -> Reply {
    match answer {
        Ok(result) => Reply::Result(Box::new(result)),
        // What rmcp itself has to say in an error's form, it marks, and it arrives as another error.
        Err(ServiceError::McpError(error)) => Reply::Error(error),
        Err(error) => match fate {
            Fate::Unsent(why) => Reply::Unsent(why),
            Fate::Broken(why) => Reply::Unknown(why),
            Fate::Sent => Reply::Unknown(match error {
                ServiceError::Timeout { timeout } => format!("it did not answer within {} s", timeout.as_secs()),
                ServiceError::TransportClosed => "its answer ended before the result".to_owned(),
                other => other.to_string(),
            }),
        },
    }
}

fn config(url: Arc<str>) -> StreamableHttpClientTransportConfig {
    let mut resumes = ExponentialBackoff::default();
    resumes.max_times = Some(MAX_RESUMES);
    resumes.max_delay = Some(Duration::from_secs(5));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        // By default a request whose session is gone is sent a second time.
        .reinit_on_expired_session(false)
        .control_request_timeout(CONTROL_TIMEOUT);
    config.retry_config = Arc::new(resumes);
    config
}

fn reason(error: &ClientInitializeError, server: &Server) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refuses a session: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => reason(fallback, server),
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        _ => match server {
            Server::Remote { .. } => "it does not speak MCP over streamable HTTP".to_owned(),
            Server::Program(..) => "it does not speak MCP over its standard input and output".to_owned(),
        },
    }
}
