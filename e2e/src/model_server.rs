//! A model that follows a script: the real protocols of OpenAI (chat completions) and Anthropic (Messages), in one
//! piece and as a stream, and a strict reader of what it is sent.
//!
//! One script drives both protocols: a turn says what the model thinks, says and calls, and what goes wrong before or
//! on the way. `wire` knows how each provider reads a request, refuses it and writes an answer; all else sees a
//! `Request` and an `Answer`. `delivery` sends: a stream in pieces that end within characters,
//! escapes and events, and answers that are slow, cut off, stand still or are far too long. What the providers' own
//! SDKs make of it is tested by `hack/sdk-test`.
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
mod desk;
mod endpoint;
mod error;
mod event;
mod lookup;
mod request;
pub mod script;
mod stage;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::check::Violation;
pub use self::control::{Held, Requests, UserRequests, Violations};
use self::script::{Script, Source};
use crate::serving::Running;

/// A scripted model that has not been started.
#[derive(Debug)]
pub struct ModelServer {
    script: Source,
    key: Option<Key>,
}

/// Where the key that clients must send comes from.
#[derive(Clone, Debug)]
pub enum Key {
    /// The key itself.
    Value(String),
    /// A file, read at each request, so that a changed Secret counts at once.
    File(PathBuf),
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
        let desk = desk::Desk::new(stop.clone());
        let router = endpoint::router(self.script, self.key, desk.clone()).merge(control::router(desk));
        Running::start(addr, router, stop).await
    }
}

impl Key {
    /// Returns the key as it is now, without the white space that files end with.
    fn read(&self) -> io::Result<String> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map(|key| key.trim().to_owned())
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
}
