//! The model client: OpenAI chat completions, as any compatible server speaks them.
//!
//! A request can be asked again without harm, so the client is patient: whatever a person or time can mend is
//! tried again with growing pauses, and who watches is told what is waited for. An answer that cannot be read
//! is handed back at once, since the engine counts those.

mod answer;
mod clients;
mod key;
mod refusal;
mod request;
mod retry_after;
mod trouble;

pub use clients::Clients;
pub use key::SecretMissing;

use crate::backoff::Backoff;
use crate::http;
use crate::redact::Redactor;
use crate::sentence::sentence;
use crate::waits::Waits;
use bloomery_crds::report::Waiting;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use bytes::Bytes;
use key::Key;
use request::History;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use trouble::{Pace, Trouble};

/// The largest answer that is read, in bytes.
pub const MAX_ANSWER: usize = 2 * 1024 * 1024;

/// How much of what a server says is passed on, in bytes.
const MAX_QUOTE: usize = 300;

/// The longest clause about a failure, in bytes: it becomes an event, a condition and most of an outcome.
const MAX_CLAUSE: usize = 896;

/// How long a connection is kept: load balancers in front of providers keep theirs for 60 s and longer.
const IDLE: Duration = Duration::from_secs(50);

/// How long and how often the client tries.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long a model that gives no answer is asked again, from its first failure on. A request under way is not cut
    /// short by it.
    pub whole: Duration,
    /// The pauses after what passes by itself: rate limits, overload, a lost connection.
    pub brisk: Backoff,
    /// The pauses after what a person has to mend: a key, a model's name, an address.
    pub slow: Backoff,
    /// The pauses while a key is not there: looking costs a read of a file.
    pub missing: Backoff,
}

impl Patience {
    /// Asks again for so long.
    pub fn of(whole: Duration) -> Self {
        let seconds = Duration::from_secs;
        Self {
            whole,
            brisk: Backoff::new(seconds(1), seconds(30)),
            slow: Backoff::new(seconds(5), seconds(60)),
            missing: Backoff::new(seconds(1), seconds(5)),
        }
    }
}

/// Why there is no answer, in sentences that hold no key and are bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Whether it may be asked again.
    pub kind: ModelFailure,
    /// What happened, to which Model, and what to do.
    pub message: String,
}

/// A client of one Model, for one Job.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: ModelEndpoint,
    url: String,
    user: String,
    patience: Patience,
    redactor: Redactor,
    /// Of the main loop.
    history: Mutex<History>,
}

impl Client {
    /// Makes a client; nothing is asked yet.
    ///
    /// The Job's UID goes along as `user`: stable, so that a provider can route a conversation to the cache of
    /// its prefix and a person can find the Job behind a request, and it says nothing of anybody. `redactor` learns the
    /// key before it is used, and keeps it out of what is told.
    pub fn new(
        endpoint: &ModelEndpoint,
        job_uid: &str,
        patience: Patience,
        redactor: Redactor,
    ) -> Result<Self, http::Error> {
        Ok(Self {
            http: http::client(&endpoint.base_url, IDLE)?,
            url: format!("{}/chat/completions", endpoint.base_url.trim_end_matches('/')),
            endpoint: endpoint.clone(),
            user: job_uid.to_owned(),
            patience,
            redactor,
            history: Mutex::default(),
        })
    }

    /// Says which key is not in its Secret yet. Looked up anew each time, so that it heals without a restart.
    pub fn missing(&self) -> Option<Waiting> {
        match Key::read(self.endpoint.api_key.as_ref()) {
            Err(key::Error::Missing(missing)) => Some(missing.into()),
            Ok(_) | Err(key::Error::Unusable { .. }) => None,
        }
    }

    /// Asks until there is an answer, patience is over or `within` was spent in requests; pauses do not count.
    ///
    /// `waits` is told what is waited for before each pause; the question is over when this returns. Dropping the
    /// future drops the request.
    ///
    /// # Errors
    /// [`ModelFailure::Unreadable`] for an answer that cannot be read; [`ModelFailure::Unavailable`] where asking
    /// again is of no use, or was of none.
    pub async fn complete(
        &self,
        request: &ModelRequest<'_>,
        within: Duration,
        waits: &Waits<'_>,
    ) -> Result<Answer, Failure> {
        let body = self.body(request).map_err(|error| {
            self.failure(ModelFailure::Unavailable, &format!("cannot be asked: the request cannot be written: {error}"))
        })?;
        let mut tries = Tries::new(self.patience.clone(), within, Instant::now());
        loop {
            let trouble = match self.attempt(&body, tries.remaining(Instant::now(), waits.idle())).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let (pace, message) = match trouble {
                Trouble::Unreadable { message } => return Err(self.failure(ModelFailure::Unreadable, &message)),
                Trouble::Refused { message } => return Err(self.failure(ModelFailure::Unavailable, &message)),
                Trouble::Missing(ref missing) => (Pace::Missing, missing.to_string()),
                Trouble::Passing { pace, ref message } => (pace, message.clone()),
            };
            let Some(pause) = tries.pause(pace, Instant::now(), waits.idle()) else {
                let Failure { kind, message } = self.failure(ModelFailure::Unavailable, &message);
                return Err(Failure {
                    kind,
                    message: format!("{message} It was tried {tries}. Mend that, and make the Job anew."),
                });
            };
            tracing::warn!(model = self.endpoint.name, pause = ?pause, "{message}");
            let waiting = match trouble {
                Trouble::Missing(missing) => missing.into(),
                _ => Waiting::ModelUnavailable { message: self.clause(&message) },
            };
            waits.pause(waiting, pause).await;
        }
    }

    /// A conversation has one main loop; every other stage asks a question of its own.
    fn body(&self, request: &ModelRequest<'_>) -> serde_json::Result<Bytes> {
        let (model, user) = (self.endpoint.model.as_str(), self.user.as_str());
        match request.stage {
            Stage::Plan => self.history.lock().unwrap_or_else(PoisonError::into_inner).body(model, user, request),
            Stage::Intent | Stage::Selection | Stage::Finalization | Stage::Polish => {
                request::body(model, user, request)
            }
        }
    }

    async fn attempt(&self, body: &Bytes, remaining: Duration) -> Result<Answer, Trouble> {
        let key = Key::read(self.endpoint.api_key.as_ref())?;
        self.redactor.learn(&self.endpoint.name, key.secret().as_bytes());
        let timeout = Duration::from_secs(self.endpoint.timeout_seconds).min(remaining);
        let mut request =
            self.http.post(&self.url).timeout(timeout).header(CONTENT_TYPE, "application/json").body(body.clone());
        if let Some(header) = key.header() {
            request = request.header(AUTHORIZATION, header);
        }
        let response = request.send().await.map_err(|error| trouble::transport(&error, timeout))?;
        if !response.status().is_success() {
            return Err(refusal::read(response, &self.redactor).await);
        }
        let body = http::read_bounded(response, MAX_ANSWER).await.map_err(|error| trouble::body(&error))?;
        answer::read(&body).map_err(|unreadable| Trouble::Unreadable { message: unreadable.sentence(&self.redactor) })
    }

    fn failure(&self, kind: ModelFailure, message: &str) -> Failure {
        Failure { kind, message: sentence(&self.clause(message)) }
    }

    /// What happened to which Model: `message` goes on from its name.
    fn clause(&self, message: &str) -> String {
        let ModelEndpoint { name, model, base_url, .. } = &self.endpoint;
        bounded(&format!("the Model `{name}` ({model} at {base_url}) {message}"), MAX_CLAUSE)
    }
}

/// Reads the body of a successful response, for the fuzz targets: the rest of the client is IO.
///
/// # Errors
/// The clause that the client makes of an answer that cannot be read.
#[cfg(fuzzing)]
pub fn read_answer(body: &[u8]) -> Result<Answer, String> {
    answer::read(body).map_err(|unreadable| unreadable.sentence(&Redactor::default()))
}

/// The tries of one question, and the time that is left for them.
struct Tries {
    patience: Patience,
    within: Duration,
    began: Instant,
    failed: Option<Instant>,
    count: u32,
}

impl Tries {
    fn new(patience: Patience, within: Duration, now: Instant) -> Self {
        Self { patience, within, began: now, failed: None, count: 0 }
    }

    /// What is left for requests, where for so long none was under way.
    fn remaining(&self, now: Instant, idle: Duration) -> Duration {
        self.within.saturating_sub(now.saturating_duration_since(self.began).saturating_sub(idle))
    }

    /// How long to pause before the next try; none where it was the last. A pause that would outlast the
    /// patience is shortened to it: one more try at its end costs nothing.
    fn pause(&mut self, pace: Pace, now: Instant, idle: Duration) -> Option<Duration> {
        self.count += 1;
        let waited = now.saturating_duration_since(*self.failed.get_or_insert(now));
        let left = self.patience.whole.saturating_sub(waited);
        let pause = match pace {
            Pace::Brisk => self.patience.brisk.pause(),
            Pace::Slow => self.patience.slow.pause(),
            Pace::Missing => self.patience.missing.pause(),
            Pace::Asked(pause) => pause.max(self.patience.brisk.pause()),
        };
        (!left.is_zero() && !self.remaining(now, idle).is_zero()).then(|| pause.min(left))
    }
}

impl std::fmt::Display for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        write!(f, "{times} in {} s", self.began.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests;
