//! A model that follows a script: the real protocols of OpenAI (chat completions) and Anthropic (Messages), in one
//! piece and as a stream, and a strict reader of what it is sent.
//!
//! One script drives both protocols: a turn says what the model thinks, says and calls, and what goes wrong before or
//! on the way. The modules are layers, and each imports only from those above it in this list:
//!
//! - values: `script` (with its faults), `place`, `request`, `violation`, `records`, `key`, `event`, `error`, `cache`, `answer`
//! - `stage`, `lookup`: the answer that the script has for a request
//! - `wire`: translates between these values and the protocol of a provider, and checks requests as the provider does
//! - `check`: the rules that are the same for every provider
//! - `delivery`: sends an answer, as a stream in pieces that end within characters, escapes and events; slowly, cut off,
//!   standing still or far too long
//! - `state`: what all requests share
//! - `endpoint`, `control`: the HTTP routes for clients, and those for tests
//!
//! The providers' own SDKs are tested against it by `hack/sdk-test`.
//!
//! A turn is found by what the request itself holds (its conversation by its texts, its place by
//! the answers already in it), so a worker that was killed and started again is answered as the one
//! before would have been. What is kept in memory is only what tests ask for: which faults were
//! served, what was asked, and which requests broke the protocol.

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
    /// Follows a script that does not change.
    pub fn new(script: Script) -> Self {
        Self { script: Source::fixed(script), key: None }
    }

    /// Follows the script in a file, in its latest version at each request.
    ///
    /// # Errors
    /// The file cannot be read, or holds no script.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        Ok(Self { script: Source::file(path)?, key: None })
    }

    /// Refuses clients that do not send this key: as a bearer, or to Anthropic's protocol in `x-api-key`.
    #[must_use]
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Starts answering on `addr`.
    ///
    /// # Errors
    /// `addr` cannot be listened on, or the key's file cannot be read.
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
