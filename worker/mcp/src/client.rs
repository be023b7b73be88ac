//! The client of one MCP server.

use crate::access::Access;
use crate::cache::ToolListCache;
use crate::call::{self, SendOutcome};
use crate::delivery::Retry;
use crate::error::Error;
use crate::http_transport::HttpTransport;
use crate::known_tools::KnownTools;
use crate::limits::{DEFAULT_ANSWER_BYTES, MAX_BODY_BYTES, MAX_TOOLS};
use crate::listing;
use crate::outcome::{CallOutcome, CallResult, describe_lost_call};
use crate::program::Program;
use crate::server_tokens::ServerTokens;
use crate::session::{self, Era, SESSION_UNKNOWN, Server, Session};
use crate::stderr_log::StderrLog;
use bloomery_crds::run::{BoundResource, ExternalMcp, McpEndpoint};
use bloomery_engine::bindings;
use bloomery_engine::event::ToolProgress;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_http::address::AddressPolicy;
use bloomery_http::progress::{Progress, ProgressObserver};
use bloomery_http::{Backoff, ClientOptions, IDLE_TIMEOUT};
use bloomery_redact::Redactor;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The default timeout of a call, and the timeout of a list with all its pages.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest timeout that a Skill can set for a call. It is below 5 minutes, the time by which a pod may exceed the duration of its
/// Job.
pub const MAX_CALL_TIMEOUT: Duration = Duration::from_mins(4);

/// The shortest time to begin a session for a call, because its server may have to start (`docs/explanation/design.md`, section 6).
const MIN_BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a call is retried while its server cannot be reached: long enough for a restart of the server.
const UNREACHABLE_RETRY_PERIOD: Duration = Duration::from_secs(15);

/// A client of one MCP server. Calls may run concurrently.
#[derive(Debug)]
pub struct Client {
    server: Server,
    /// The URL of the server, or the name of its program.
    name: Arc<str>,
    session: Mutex<SessionSlot>,
    /// The standard error of a program.
    stderr: Option<StderrLog>,
    /// The resources that the Job binds, in the form in which each call sends them.
    resources: Vec<Value>,
    cache: Option<Box<dyn ToolListCache>>,
    observer: ProgressObserver,
    /// Whether the tools came from the cache and no session has begun since.
    is_from_cache: AtomicBool,
    unreachable_retry_period: Duration,
}

impl Client {
    /// Creates a client of a server at any address. The first request begins a session, and the next request after a lost session
    /// begins another. Beginning a session has no side effect. The client redacts everything that the server sends.
    pub fn new(endpoint: &McpEndpoint, redactor: Redactor) -> Result<Self, bloomery_http::Error> {
        Self::with_options(endpoint, ClientOptions::default(), redactor)
    }

    /// Creates a client of a server that the operator runs, at any address. Each request carries the token of `tokens`.
    pub fn with_token(
        endpoint: &McpEndpoint,
        tokens: ServerTokens,
        redactor: Redactor,
    ) -> Result<Self, bloomery_http::Error> {
        let http = bloomery_http::client(&endpoint.url, IDLE_TIMEOUT, ClientOptions::default())?;
        Ok(Self::at(endpoint, Access::Token(http, tokens), redactor))
    }

    /// Creates a client of a server at an address that `addresses` allows.
    pub fn restricted(
        addresses: AddressPolicy,
        endpoint: &McpEndpoint,
        redactor: Redactor,
    ) -> Result<Self, bloomery_http::Error> {
        Self::with_options(endpoint, ClientOptions { addresses: Some(addresses), ..ClientOptions::default() }, redactor)
    }

    /// Creates a client of a server outside of the cluster, at an address that `addresses` allows. Each request carries the headers of
    /// `external`.
    pub fn external(
        addresses: AddressPolicy,
        endpoint: &McpEndpoint,
        external: &ExternalMcp,
        redactor: Redactor,
    ) -> Self {
        Self::at(endpoint, Access::external(&endpoint.url, addresses, external), redactor)
    }

    fn with_options(
        endpoint: &McpEndpoint,
        options: ClientOptions,
        redactor: Redactor,
    ) -> Result<Self, bloomery_http::Error> {
        let http = bloomery_http::client(&endpoint.url, IDLE_TIMEOUT, options)?;
        Ok(Self::at(endpoint, Access::Plain(http), redactor))
    }

    fn at(endpoint: &McpEndpoint, access: Access, redactor: Redactor) -> Self {
        let url = Arc::from(endpoint.url.as_str());
        let server = Server::Remote { transport: HttpTransport::new(access, redactor), url: Arc::clone(&url) };
        Self::with_server(server, url)
    }

    /// Creates a client of a server that is a local program. The program is started for each session.
    pub fn program(program: Program, redactor: Redactor) -> Self {
        let name = Arc::from(program.to_string());
        let stderr = StderrLog::new(program.listener);
        let log = stderr.clone();
        let program = Program { listener: Arc::new(move |line| log.push(line)), ..program };
        Self {
            stderr: Some(stderr),
            ..Self::with_server(Server::Program { program, redactor, max_answer: DEFAULT_ANSWER_BYTES }, name)
        }
    }

    fn with_server(server: Server, name: Arc<str>) -> Self {
        Self {
            server,
            name,
            session: Mutex::default(),
            stderr: None,
            resources: Vec::new(),
            cache: None,
            observer: ProgressObserver::default(),
            is_from_cache: AtomicBool::default(),
            unreachable_retry_period: UNREACHABLE_RETRY_PERIOD,
        }
    }

    /// Sends the resources that the Job binds with each call, without their secrets.
    #[must_use]
    pub fn with_resources(self, resources: &[BoundResource]) -> Self {
        Self { resources: bindings::for_tools(resources), ..self }
    }

    /// Names the server in messages as the sidecar of this pod with this container.
    #[must_use]
    pub fn as_sidecar(self, container: &str) -> Self {
        let name = format!("in the container {container} of this pod ({})", self.name);
        Self { name: Arc::from(name), ..self }
    }

    /// Shares lists of tools through a cache.
    #[must_use]
    pub fn with_cache(self, cache: impl ToolListCache + 'static) -> Self {
        Self { cache: Some(Box::new(cache)), ..self }
    }

    /// Reports the progress of calls to `observer`.
    #[must_use]
    pub fn with_observer(self, observer: &ProgressObserver) -> Self {
        Self { observer: observer.clone(), ..self }
    }

    /// Sets the size limit of an answer, in bytes. Default: that of a Skill.
    #[must_use]
    pub fn with_max_result_bytes(self, bytes: u32) -> Self {
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        let server = match self.server {
            Server::Remote { transport, url } => Server::Remote { transport: transport.with_max_answer(limit), url },
            Server::Program { program, redactor, .. } => Server::Program { program, redactor, max_answer: limit },
        };
        Self { server, ..self }
    }

    /// Treats a server that requires credentials as unusable. By default, the client retries, because credentials may be added later. Has
    /// no effect on a client that was created with credentials.
    #[must_use]
    pub fn without_credentials(self) -> Self {
        let server = match self.server {
            Server::Remote { transport, url } => Server::Remote { transport: transport.without_credentials(), url },
            program @ Server::Program { .. } => program,
        };
        Self { server, ..self }
    }

    /// Returns all tools: from the cache if a worker listed them recently, or else from the server, within the time `within`.
    pub async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, Error> {
        let is_bounded =
            |tools: &Vec<ListedTool>| tools.len() <= MAX_TOOLS && listing::total_bytes(tools) <= MAX_BODY_BYTES;
        if let Some(tools) = self.cache.as_ref().and_then(|cache| cache.load()).filter(is_bounded) {
            self.is_from_cache.store(true, Ordering::Relaxed);
            return Ok(tools);
        }
        self.list_uncached(within).await
    }

    /// Returns all tools from the server, within the time `within`.
    pub async fn list_uncached(&self, within: Duration) -> Result<Vec<ListedTool>, Error> {
        let until = Instant::now() + within.min(CALL_TIMEOUT);
        let session = self.session(until).await.map_err(|error| self.list_error(error))?;
        let listed = listing::list(&session, until).await;
        if matches!(listed, Err(listing::Error::Unavailable(_))) {
            self.discard(&session).await;
        }
        if let (Ok(tools), Some(cache)) = (&listed, &self.cache) {
            cache.store(tools);
        }
        listed.map_err(|error| {
            self.show_stderr();
            match error {
                listing::Error::Unavailable(reason) => {
                    self.list_error(session::Error { reason, retry: session.deliveries().retry() })
                }
                listing::Error::Unusable(message) => Error::Unusable { server: self.name.to_string(), message },
            }
        })
    }

    fn list_error(&self, session::Error { reason: message, retry }: session::Error) -> Error {
        let server = self.name.to_string();
        match self.server {
            _ if retry != Retry::Never => Error::Unavailable { server, message },
            Server::Program { .. } => Error::ProgramFailed { server, message },
            Server::Remote { .. } => Error::Refused { server, message },
        }
    }

    /// Calls a tool. The timeout of the answer is that of the Skill. The call ends after `within` in any case. A tool that changed after
    /// the Job began is not called.
    ///
    /// The call is sent at most once, with one exception. If the server does not know the session of the call, and then begins another
    /// session, the server has not run the call, so the call is sent once more. If the server cannot be reached, no byte was sent, so the
    /// call is retried for a short time.
    ///
    /// `listener` receives progress while the call runs.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration, listener: &dyn Fn(ToolProgress)) -> CallResult {
        let _observed = ObservedCall::new(&self.observer, call.tool);
        let began = Instant::now();
        let until = began + within;
        let retry_until = until.min(began + self.unreachable_retry_period);
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
        let (mut listed, mut is_renewed) = (None, false);
        let outcome = loop {
            let reason = match self.send_once(call, until, &mut listed, listener).await {
                SendOutcome::Answered(outcome) => break outcome,
                SendOutcome::NotSent(reason) => reason,
                SendOutcome::Refused(text) => break self.not_sent(call, text),
                SendOutcome::SessionUnknown if !is_renewed && self.is_session_renewed(until).await => {
                    is_renewed = true;
                    continue;
                }
                SendOutcome::SessionUnknown => break self.indeterminate(SESSION_UNKNOWN),
                SendOutcome::Unknown(reason) => break self.indeterminate(&reason),
            };
            let delay = backoff.next_delay();
            if Instant::now() + delay >= retry_until {
                self.show_stderr();
                break self.not_sent(call, self.describe_not_sent(&reason));
            }
            tokio::time::sleep(delay).await;
        };
        CallResult { outcome, listed }
    }

    /// Ends the session. Otherwise the server would keep the session until a timeout.
    pub async fn close(&self) {
        if let Some(session) = self.session.lock().await.current.take().and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    /// Sends a call once, in the current session or a new one. The timeout of the call begins when the call is sent.
    async fn send_once(
        &self,
        call: &ToolCall<'_>,
        until: Instant,
        listed: &mut Option<Vec<ListedTool>>,
        listener: &dyn Fn(ToolProgress),
    ) -> SendOutcome {
        let (request, meta) = match call::build_request(call, &self.resources) {
            Ok(parts) => parts,
            Err(error) => return SendOutcome::Refused(error.to_string()),
        };
        if Instant::now() >= until {
            return SendOutcome::NotSent("no time is left for the call".to_owned());
        }
        let timeout = call.timeout_seconds.map_or(CALL_TIMEOUT, Duration::from_secs).min(MAX_CALL_TIMEOUT);
        let begin_until = until.min(Instant::now() + timeout.max(MIN_BEGIN_TIMEOUT));
        let session = match self.session(begin_until).await {
            Ok(session) => session,
            Err(session::Error { reason, retry: Retry::Soon }) => return SendOutcome::NotSent(reason),
            Err(session::Error { reason, .. }) => return SendOutcome::Refused(self.describe_not_sent(&reason)),
        };
        match listing::check_tool(&session, call, begin_until).await {
            Ok(check) => {
                *listed = check.listed.or(listed.take());
                if let Some(objection) = check.objection {
                    return SendOutcome::Refused(objection);
                }
            }
            Err(listing::Error::Unavailable(reason)) => {
                self.discard(&session).await;
                return match session.deliveries().retry() {
                    Retry::Soon => SendOutcome::NotSent(reason),
                    _ => SendOutcome::Refused(self.describe_not_sent(&reason)),
                };
            }
            Err(listing::Error::Unusable(reason)) => {
                return SendOutcome::NotSent(format!("its list of tools cannot be used: {reason}"));
            }
        }
        let answer_until = until.min(Instant::now() + timeout);
        let reply = session.ask(request, meta, answer_until, listener).await;
        let is_outdated = session.is_outdated_by(&reply);
        let outcome = call::classify(reply);
        if is_outdated || !matches!(outcome, SendOutcome::Answered(_)) {
            self.discard(&session).await;
        }
        outcome
    }

    /// Begins another session after a response that the last session is not known. Returns whether the server answers `initialize`.
    /// Then the response came from the server itself, and not from a proxy in front of the server.
    async fn is_session_renewed(&self, until: Instant) -> bool {
        self.session(until).await.is_ok_and(|session| session.era() == Era::Older)
    }

    /// Returns the current session, or a new one if there is none or it has ended.
    async fn session(&self, until: Instant) -> Result<Arc<Session>, session::Error> {
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.current.as_ref().filter(|session| session.is_alive()) {
            return Ok(session.clone());
        }
        self.server.wait(until).await;
        let is_cached = self.is_from_cache.swap(false, Ordering::Relaxed);
        let known_tools = if is_cached { KnownTools::cached() } else { KnownTools::default() };
        let begun = Session::begin(&self.server, slot.era, until, &self.observer).await;
        let session = Arc::new(begun.inspect_err(|_| self.show_stderr())?.with_known_tools(known_tools));
        *slot = SessionSlot { current: Some(session.clone()), era: Some(session.era()) };
        Ok(session)
    }

    /// Discards a session, so that the next request begins a new one. Running requests keep the old session.
    async fn discard(&self, session: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            slot.current = None;
        }
    }

    /// Shows the standard error of the program, because something failed.
    fn show_stderr(&self) {
        self.stderr.iter().for_each(StderrLog::show);
    }

    fn describe_not_sent(&self, reason: &str) -> String {
        format!("The call was not sent to {}: {reason}.", self.name)
    }

    /// Returns the outcome of a call that was not sent now: failed, or indeterminate if the call was sent before.
    fn not_sent(&self, call: &ToolCall<'_>, text: String) -> CallOutcome {
        if call.sent_before {
            return self.indeterminate(&describe_lost_call(&text));
        }
        CallOutcome::failed(text)
    }

    fn indeterminate(&self, reason: &str) -> CallOutcome {
        self.show_stderr();
        CallOutcome::Indeterminate { text: format!("the call was sent to the MCP server {}, and {reason}", self.name) }
    }
}

/// The current session, and the era of the last one.
#[derive(Debug, Default)]
struct SessionSlot {
    current: Option<Arc<Session>>,
    era: Option<Era>,
}

/// Reports the beginning of a call to an observer when created, and the end of the call when dropped.
struct ObservedCall<'a> {
    observer: &'a ProgressObserver,
    tool: &'a str,
}

impl<'a> ObservedCall<'a> {
    fn new(observer: &'a ProgressObserver, tool: &'a str) -> Self {
        observer.notify(|| Progress::ToolCalled(tool.to_owned()));
        Self { observer, tool }
    }
}

impl Drop for ObservedCall<'_> {
    fn drop(&mut self) {
        self.observer.notify(|| Progress::ToolEnded(self.tool.to_owned()));
    }
}

#[cfg(test)]
mod tests;
