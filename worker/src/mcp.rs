//! The MCP client: a Skill's tools over streamable HTTP, or from a program of this machine, in both eras of the protocol.
//!
//! A call may have an effect, so it is sent at most once, and what came of it is told apart with care: it
//! **failed** only if the server answered so or no byte of it left us; where neither can be proven, it is
//! **indeterminate**. The proof is kept where the bytes are (`wire`), not guessed from error messages.

mod answer;
mod listing;
mod session;
mod stdio;
mod text;
mod transport;
mod wire;

use crate::backoff::Backoff;
use crate::http;
use crate::redact::Redactor;
use bloomery_crds::run::McpEndpoint;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use session::{Server, Session};
use std::sync::Arc;
use std::time::Duration;
pub use stdio::{Listener, Program};
use tokio::sync::Mutex;
use tokio::time::Instant;
use transport::Transport;

/// The largest body that is read, in bytes: an answer, or all events of a stream.
pub const MAX_BODY: usize = 1024 * 1024;

/// How long one call may take.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a connection is kept. Servers close idle ones after 5 s and later, and a call that meets the
/// closing would be indeterminate.
const IDLE: Duration = Duration::from_secs(4);

/// How long a call is held back while its server cannot be reached: long enough for a restart.
const UNSENT_PATIENCE: Duration = Duration::from_secs(15);

/// Why the tools could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The server does not answer, or not as a server of MCP would. It may be asked again.
    #[error("the MCP server at {url} cannot be asked for its tools: {message}")]
    Unavailable {
        /// Where.
        url: String,
        /// Why not.
        message: String,
    },
    /// The list itself cannot be used. Only a change of the server mends it.
    #[error("the MCP server at {url} lists tools that cannot be used: {message}")]
    Unusable {
        /// Where.
        url: String,
        /// Why not.
        message: String,
    },
}

/// What came of a call. The text is for the model; that of a call without an answer goes into a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server has answered.
    Completed {
        /// Its answer.
        text: String,
    },
    /// The server has answered that the call failed, or no byte of it left us.
    Failed {
        /// Why.
        text: String,
    },
    /// The call was sent, and nobody knows whether it took effect.
    Indeterminate {
        /// What is known.
        text: String,
    },
}

/// A client of one MCP server. Reads may be called at once.
#[derive(Debug)]
pub struct Client {
    server: Server,
    /// Its address, or its name where it is a program.
    url: Arc<str>,
    session: Mutex<Option<Arc<Session>>>,
    unsent_patience: Duration,
}

impl Client {
    /// Makes a client. The session begins with the first request, and anew where it was lost: beginning one has
    /// no effect. What the server says is read without the secrets that `redactor` knows.
    pub fn new(endpoint: &McpEndpoint, redactor: Redactor) -> Result<Self, http::Error> {
        let (http, url) = (http::client(&endpoint.url, IDLE)?, Arc::from(endpoint.url.as_str()));
        Ok(Self::of(Server::Remote { transport: Transport::new(http, redactor), url: Arc::clone(&url) }, url))
    }

    /// Makes a client of a server that is a program of this machine. It is started for each session.
    pub fn program(program: Program, redactor: Redactor) -> Self {
        let name = Arc::from(program.to_string());
        Self::of(Server::Program(program, redactor), name)
    }

    fn of(server: Server, url: Arc<str>) -> Self {
        Self { server, url, session: Mutex::default(), unsent_patience: UNSENT_PATIENCE }
    }

    /// Lists all tools, once.
    pub async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let until = Instant::now() + within;
        let session = self.session(until).await.map_err(|message| self.unavailable(message))?;
        let listed = session.list(until).await;
        if matches!(listed, Err(listing::Error::Unavailable(_))) {
            self.forget(&session).await;
        }
        listed.map_err(|error| match error {
            listing::Error::Unavailable(message) => self.unavailable(message),
            listing::Error::Unusable(message) => ListError::Unusable { url: self.url.to_string(), message },
        })
    }

    /// Makes a call: sends it at most once, within [`CALL_TIMEOUT`] or `within`, whichever is shorter.
    ///
    /// While the server cannot even be reached the call waits a little, since nothing of it has left us.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration) -> CallOutcome {
        let began = Instant::now();
        let until = began + within.min(CALL_TIMEOUT);
        let patient_until = until.min(began + self.unsent_patience);
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
        loop {
            let why = match self.try_call(call, until).await {
                answer::Sent::Answered(outcome) => return outcome,
                answer::Sent::Unsent(why) => why,
                answer::Sent::Unknown(why) => return self.indeterminate(&why),
            };
            let pause = backoff.pause();
            if Instant::now() + pause >= patient_until {
                return CallOutcome::Failed { text: format!("The call was not sent to {}: {why}.", self.url) };
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends the session, where the server keeps one, so that it need not wait for its end.
    pub async fn close(&self) {
        if let Some(session) = self.session.lock().await.take().and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    async fn try_call(&self, call: &ToolCall<'_>, until: Instant) -> answer::Sent {
        let (request, meta) = match answer::request(call) {
            Ok(parts) => parts,
            Err(text) => return answer::Sent::Answered(CallOutcome::Failed { text }),
        };
        if Instant::now() >= until {
            return answer::Sent::Unsent("no time is left for it".to_owned());
        }
        let session = match self.session(until).await {
            Ok(session) => session,
            Err(why) => return answer::Sent::Unsent(why),
        };
        if let Err(listing::Error::Unavailable(why)) = session.prime(until).await {
            self.forget(&session).await;
            return answer::Sent::Unsent(why);
        }
        let sent = answer::sort(session.ask(request, meta, until).await);
        if !matches!(sent, answer::Sent::Answered(_)) {
            self.forget(&session).await;
        }
        sent
    }

    /// The session, or a new one where there is none that lives.
    async fn session(&self, until: Instant) -> Result<Arc<Session>, String> {
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| session.is_alive()) {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::begin(&self.server, until).await?);
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

    fn indeterminate(&self, why: &str) -> CallOutcome {
        CallOutcome::Indeterminate { text: format!("the MCP server at {} was asked, and {why}", self.url) }
    }
}

#[cfg(test)]
mod tests;
