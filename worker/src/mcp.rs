//! The MCP client: a Skill's tools over streamable HTTP, or from a program of this machine, in both eras of the protocol.
//!
//! A call may have an effect, so it is sent at most once, and what came of it is told apart with care: it
//! **failed** only if the server answered so or no byte of it left us; where neither can be proven, it is
//! **indeterminate**. The proof is kept where the bytes are (`wire`), not guessed from error messages.

mod answer;
mod kept;
mod listing;
mod mend;
mod news;
mod outcome;
mod session;
mod stdio;
mod text;
mod transport;
mod trouble;
mod wire;

pub use outcome::{CallOutcome, Called, ListError};

use crate::backoff::Backoff;
use crate::http::{self, Route};
use crate::progress::{Onlooker, Progress};
use crate::reach::Reach;
use crate::recent::Recent;
use crate::tools::lost_before;
use bloomery_crds::run::{BoundResource, McpEndpoint};
use bloomery_engine::bindings;
use bloomery_engine::event::ToolProgress;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_redact::Redactor;
use kept::Kept;
use listing::Listing;
use serde::Serialize;
use serde_json::Value;
use session::{NotBegun, Server, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
pub use stdio::{Listener, Program};
use tokio::sync::Mutex;
use tokio::time::Instant;
use transport::Transport;

/// The largest body that is read, in bytes: an answer, or all events of a stream.
pub const MAX_BODY: usize = 1024 * 1024;

/// How long one call may take where the Skill says nothing, and how long all pages of a list may.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// How long one call may take, whatever the Skill says: a pod may outlive its Job's duration by 5 minutes only.
pub const MAX_CALL_TIMEOUT: Duration = Duration::from_mins(4);

/// How long the first call may take at least: its server may have to start (`docs/explanation/design.md`, section 6).
const FIRST_CALL: Duration = Duration::from_secs(30);

/// How long a call is held back while its server cannot be reached: long enough for a restart.
const UNSENT_PATIENCE: Duration = Duration::from_secs(15);

/// A client of one MCP server. Reads may be called at once.
#[derive(Debug)]
pub struct Client {
    server: Server,
    /// Its address, or its name where it is a program.
    url: Arc<str>,
    session: Mutex<Option<Arc<Session>>>,
    /// What the Job binds, as tools are told of it.
    resources: Vec<Value>,
    kept: Option<Kept>,
    onlooker: Onlooker,
    /// The tools come from the cache, and no session has begun since.
    from_cache: AtomicBool,
    has_called: AtomicBool,
    unsent_patience: Duration,
}

impl Client {
    /// Makes a client. The session begins with the first request, and anew where it was lost: beginning one has
    /// no effect. What the server says is read without the secrets that `redactor` knows.
    pub fn new(endpoint: &McpEndpoint, redactor: Redactor) -> Result<Self, http::Error> {
        Self::routed(endpoint, Route::default(), redactor)
    }

    /// Makes the same of a server that may be where `reach` says, and nowhere else.
    pub fn within(reach: Reach, endpoint: &McpEndpoint, redactor: Redactor) -> Result<Self, http::Error> {
        Self::routed(endpoint, Route { reach: Some(reach), ..Route::default() }, redactor)
    }

    fn routed(endpoint: &McpEndpoint, route: Route, redactor: Redactor) -> Result<Self, http::Error> {
        let (http, url) = (http::routed(&endpoint.url, http::IDLE, route)?, Arc::from(endpoint.url.as_str()));
        Ok(Self::of(Server::Remote { transport: Transport::new(http, redactor), url: Arc::clone(&url) }, url))
    }

    /// Makes a client of a server that is a program of this machine. It is started for each session.
    pub fn program(program: Program, redactor: Redactor) -> Self {
        let name = Arc::from(program.to_string());
        Self::of(Server::Program(program, redactor), name)
    }

    fn of(server: Server, url: Arc<str>) -> Self {
        Self {
            server,
            url,
            session: Mutex::default(),
            resources: Vec::new(),
            kept: None,
            onlooker: Onlooker::default(),
            from_cache: AtomicBool::default(),
            has_called: AtomicBool::default(),
            unsent_patience: UNSENT_PATIENCE,
        }
    }

    /// Tells each call what the Job binds, secrets left out.
    #[must_use]
    pub fn telling(self, resources: &[BoundResource]) -> Self {
        Self { resources: bindings::for_tools(resources), ..self }
    }

    /// Keeps lists for the other workers of the slag, and reads theirs. `server` is all that makes the server what it is
    /// beside where it is.
    #[must_use]
    pub fn keeping(self, recent: Recent, server: &impl Serialize) -> Self {
        let kept = Kept::new(recent, &self.url, server);
        Self { kept: Some(kept), ..self }
    }

    /// Lets somebody look on while tools are called.
    #[must_use]
    pub fn seen_by(self, onlooker: &Onlooker) -> Self {
        Self { onlooker: onlooker.clone(), ..self }
    }

    /// Does not wait for a server that wants credentials: there are none, and will be none.
    #[must_use]
    pub fn without_credentials(self) -> Self {
        let server = match self.server {
            Server::Remote { transport, url } => Server::Remote { transport: transport.without_credentials(), url },
            program @ Server::Program(..) => program,
        };
        Self { server, ..self }
    }

    /// Lists all tools, once; or reads them from the cache, where a worker has listed them lately.
    pub async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        if let Some(tools) = self.kept.as_ref().and_then(Kept::read) {
            self.from_cache.store(true, Ordering::Relaxed);
            return Ok(tools);
        }
        self.list_anew(within).await
    }

    /// Lists all tools, once, whatever the cache has.
    pub async fn list_anew(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let until = Instant::now() + within.min(CALL_TIMEOUT);
        let session = self.session(until).await.map_err(|NotBegun { why, is_final }| {
            let url = self.url.to_string();
            match self.server {
                _ if !is_final => self.unavailable(why),
                Server::Program(..) => ListError::Dead { url, message: why },
                Server::Remote { .. } => ListError::Refused { url, message: why },
            }
        })?;
        let listed = session.list(until).await;
        if matches!(listed, Err(listing::Error::Unavailable(_))) {
            self.forget(&session).await;
        }
        if let (Ok(tools), Some(kept)) = (&listed, &self.kept) {
            kept.write(tools);
        }
        listed.map_err(|error| match error {
            listing::Error::Unavailable(message) => self.unavailable(message),
            listing::Error::Unusable(message) => ListError::Unusable { url: self.url.to_string(), message },
        })
    }

    /// Makes a call: sends it at most once, within what the Skill gives it or `within`, whichever is shorter. A tool that
    /// is not what it was when the Job began is not called.
    ///
    /// While the server cannot even be reached the call waits a little, since nothing of it has left us. What the server
    /// tells of the call while it is under way, `listener` hears at once.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration, listener: &dyn Fn(ToolProgress)) -> Called {
        let _under_way = UnderWay::new(&self.onlooker, call.tool);
        let began = Instant::now();
        let until = began + within.min(self.timeout(call));
        let patient_until = until.min(began + self.unsent_patience);
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
        let mut listed = None;
        let outcome = loop {
            let why = match self.try_call(call, until, &mut listed, listener).await {
                answer::Sent::Answered(outcome) => break outcome,
                answer::Sent::Unsent(why) => why,
                answer::Sent::Refused(text) => break self.unsent(call, text),
                answer::Sent::Unknown(why) => break self.indeterminate(&why),
            };
            let pause = backoff.pause();
            if Instant::now() + pause >= patient_until {
                break self.unsent(call, format!("The call was not sent to {}: {why}.", self.url));
            }
            tokio::time::sleep(pause).await;
        };
        Called { outcome, listed }
    }

    fn timeout(&self, call: &ToolCall<'_>) -> Duration {
        let own = call.timeout_seconds.map_or(CALL_TIMEOUT, Duration::from_secs).min(MAX_CALL_TIMEOUT);
        if self.has_called.swap(true, Ordering::Relaxed) { own } else { own.max(FIRST_CALL) }
    }

    /// Ends the session, where the server keeps one, so that it need not wait for its end.
    pub async fn close(&self) {
        if let Some(session) = self.session.lock().await.take().and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    async fn try_call(
        &self,
        call: &ToolCall<'_>,
        until: Instant,
        listed: &mut Option<Vec<ListedTool>>,
        listener: &dyn Fn(ToolProgress),
    ) -> answer::Sent {
        let (request, meta) = match answer::request(call, &self.resources) {
            Ok(parts) => parts,
            Err(text) => return answer::Sent::Refused(text),
        };
        if Instant::now() >= until {
            return answer::Sent::Unsent("no time is left for it".to_owned());
        }
        let session = match self.session(until).await {
            Ok(session) => session,
            Err(NotBegun { why, .. }) => return answer::Sent::Unsent(why),
        };
        match session.look(call, until).await {
            Ok(look) => {
                *listed = look.listed.or(listed.take());
                if let Some(objection) = look.objection {
                    return answer::Sent::Refused(objection);
                }
            }
            Err(listing::Error::Unavailable(why)) => {
                self.forget(&session).await;
                return answer::Sent::Unsent(why);
            }
            Err(listing::Error::Unusable(why)) => {
                return answer::Sent::Unsent(format!("its list of tools cannot be used: {why}"));
            }
        }
        let reply = session.ask(request, meta, until, listener).await;
        let is_doubtful = session.is_doubtful_after(&reply);
        let sent = answer::sort(reply);
        if is_doubtful || !matches!(sent, answer::Sent::Answered(_)) {
            self.forget(&session).await;
        }
        sent
    }

    /// The session, or a new one where there is none that lives.
    async fn session(&self, until: Instant) -> Result<Arc<Session>, NotBegun> {
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| session.is_alive()) {
            return Ok(session.clone());
        }
        let listing =
            if self.from_cache.swap(false, Ordering::Relaxed) { Listing::known() } else { Listing::default() };
        let session = Arc::new(Session::begin(&self.server, until, listing, &self.onlooker).await?);
        *slot = Some(session.clone());
        Ok(session)
    }

    /// The next request begins a new session; requests under way keep theirs.
    async fn forget(&self, session: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *slot = None;
        }
    }

    fn unavailable(&self, message: String) -> ListError {
        ListError::Unavailable { url: self.url.to_string(), message }
    }

    /// What came of a call that was not sent: it has failed, unless it was sent before.
    fn unsent(&self, call: &ToolCall<'_>, text: String) -> CallOutcome {
        if call.sent_before {
            return self.indeterminate(&lost_before(&text));
        }
        CallOutcome::failed(text)
    }

    fn indeterminate(&self, why: &str) -> CallOutcome {
        CallOutcome::Indeterminate { text: format!("the MCP server at {} was asked, and {why}", self.url) }
    }
}

/// A call that an onlooker sees until this is dropped.
struct UnderWay<'a> {
    onlooker: &'a Onlooker,
    tool: &'a str,
}

impl<'a> UnderWay<'a> {
    fn new(onlooker: &'a Onlooker, tool: &'a str) -> Self {
        onlooker.sees(|| Progress::Called(tool.to_owned()));
        Self { onlooker, tool }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.onlooker.sees(|| Progress::Over(self.tool.to_owned()));
    }
}

#[cfg(test)]
mod tests;
