//! A model that answers from a script. It serves the protocols of OpenAI (chat completions) and Anthropic (Messages), with
//! and without streaming, and checks each request as strictly as the provider does.
//!
//! One script serves both protocols. A turn of the script is one answer: the model's thoughts, text and tool calls, and the
//! faults before or within the answer. The modules are layers, and each imports only from those above it in this list:
//!
//! - values: `script` (with its faults), `place`, `request`, `violation`, `records`, `key`, `event`, `error`, `cache`, `answer`
//! - `stage`, `lookup`: the answer that the script has for a request
//! - `wire`: translates between these values and the protocol of a provider, and checks requests as the provider does
//! - `check`: the rules that are the same for every provider
//! - `delivery`: sends an answer. It cuts streams within characters, escapes and events, and can be slow, stop early,
//!   stall or send far too much
//! - `state`: the state that all requests share
//! - `endpoint`, `control`: the HTTP routes for clients, and those for tests
//!
//! `hack/sdk-test` tests the providers' own SDKs against this server.
//!
//! The request itself selects the turn: its texts select the conversation, and the number of answers in it selects the
//! turn. So a second attempt of a Job receives the same answers as the first. The server also remembers the
//! faults that it has served, the requests that its checks compare with later ones, and records for tests: the counts of
//! requests, and the violations of the protocol.

mod answer;
mod cache;
mod check;
mod control;
mod delivery;
mod endpoint;
mod error;
mod event;
mod key;
mod lookup;
mod place;
mod records;
mod request;
pub mod script;
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod violation;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio_util::sync::CancellationToken;

pub use self::key::Key;
pub use self::records::{Held, Requests, UserRequests};
use self::script::{Script, Source};
use self::state::ServerState;
pub use self::violation::{Violation, Violations};
use crate::serving::Running;

/// A scripted model that has not been started.
#[derive(Debug)]
pub struct ModelServer {
    script: Source,
    key: Option<Key>,
}

impl ModelServer {
    /// Creates a model with a fixed script.
    pub fn new(script: Script) -> Self {
        Self { script: Source::fixed(script), key: None }
    }

    /// Creates a model with the script in a file. The file is read again when it changes.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid script.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        Ok(Self { script: Source::file(path)?, key: None })
    }

    /// Requires this key from clients, as a bearer token or, in Anthropic's protocol, in `x-api-key`.
    #[must_use]
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Starts the server on `addr`.
    ///
    /// # Errors
    /// The server cannot listen on `addr`, or the key's file cannot be read.
    pub async fn start(self, addr: SocketAddr) -> io::Result<Running> {
        if let Some(key) = &self.key {
            key.read()?;
        }
        let stop = CancellationToken::new();
        let state = ServerState::new(stop.clone());
        let router = endpoint::router(self.script, self.key, state.clone()).merge(control::router(state));
        Running::start(addr, router, stop).await
    }
}
