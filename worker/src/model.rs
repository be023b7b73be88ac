//! The model client: OpenAI chat completions and Anthropic Messages, as any compatible server speaks them.
//!
//! A request can be asked again without harm, so the client is patient: whatever a person or time can mend is
//! tried again with growing pauses, and who watches is told what is waited for. An answer that cannot be read
//! is handed back at once, since the engine counts those.

mod anthropic;
mod clients;
mod extra;
#[cfg(test)]
mod fixture;
mod history;
pub(crate) mod key;
mod no_answer;
mod openai;
mod patience;
mod refusal;
mod retry_after;
mod sse;
mod stream;
mod told;
mod transports;
mod trouble;
mod wire;

pub use clients::Clients;
pub use key::SecretMissing;
pub use patience::Patience;

use crate::http;
use crate::progress::{Onlooker, Progress};
use crate::sentence::sentence;
use crate::waits::Waits;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use bloomery_redact::Redactor;
use bytes::Bytes;
use extra::Refused;
use history::History;
use key::Key;
use patience::Tries;
use refusal::Refusal;
use reqwest::header::CONTENT_TYPE;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use transports::Transports;
use trouble::{Pace, Trouble};
use wire::Asking;

/// The largest answer that is read, in bytes.
pub const MAX_ANSWER: usize = 2 * 1024 * 1024;

/// How much of what a server says is passed on, in bytes.
const MAX_QUOTE: usize = 300;

/// The longest clause about a failure, in bytes: it becomes an event, a condition and most of an outcome.
const MAX_CLAUSE: usize = 896;

/// How long a connection is kept: load balancers in front of providers keep theirs for 60 s and longer.
const IDLE: Duration = Duration::from_secs(50);

/// Why there is no answer, in sentences that hold no key and are bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Whether it may be asked again.
    pub kind: ModelFailure,
    /// What happened, to which Model, and what to do.
    pub message: String,
}

/// Why a Model is asked no longer for an answer.
#[derive(Debug)]
struct GivenUp {
    failure: Failure,
    /// How often and how long it was tried; nothing where asking again is of no use.
    tried: Option<String>,
}

impl GivenUp {
    /// Whether another Model may have the answer, or this one later.
    fn is_of_this_model(&self) -> bool {
        self.failure.kind == ModelFailure::Unavailable
    }

    /// The failure, where there is nobody else to ask.
    fn failure(self) -> Failure {
        let Self { failure: Failure { kind, message }, tried } = self;
        let message = match tried {
            Some(tried) => format!("{message} It was tried {tried}. {REMEDY}"),
            None => message,
        };
        Failure { kind, message }
    }
}

/// What to do where nothing else was of use.
const REMEDY: &str = "Mend that, and make the Job anew.";

/// A client of one Model, for one Job.
#[derive(Debug)]
struct Client {
    transports: Arc<Transports>,
    endpoint: ModelEndpoint,
    url: String,
    user: String,
    patience: Patience,
    redactor: Redactor,
    /// Of the main loop.
    history: Mutex<History>,
    /// What the server does not take in a request.
    refused: Mutex<Refused>,
    onlooker: Onlooker,
}

impl Client {
    /// Makes a client; nothing is asked yet.
    ///
    /// The Job's UID goes along as `user`: stable, so that a provider can route a conversation to the cache of
    /// its prefix and a person can find the Job behind a request, and it says nothing of anybody. `redactor` learns the
    /// key before it is used, and keeps it out of what is told.
    fn new(
        endpoint: &ModelEndpoint,
        job_uid: &str,
        patience: Patience,
        transports: Arc<Transports>,
        redactor: Redactor,
    ) -> Result<Self, http::Error> {
        http::is_https(&endpoint.base_url)?;
        Ok(Self {
            transports,
            url: format!("{}/{}", endpoint.base_url.trim_end_matches('/'), wire::path(endpoint.provider)),
            endpoint: endpoint.clone(),
            user: job_uid.to_owned(),
            patience,
            redactor,
            history: Mutex::default(),
            refused: Mutex::default(),
            onlooker: Onlooker::default(),
        })
    }

    /// Says which key is not in its Secret yet. Looked up anew each time, so that it heals without a restart.
    fn missing(&self) -> Option<ExternalWait> {
        match Key::read(self.endpoint.api_key.as_ref()) {
            Err(key::Error::Missing(missing)) => Some(missing.into()),
            Ok(_) | Err(key::Error::Unusable { .. }) => None,
        }
    }

    /// Lets go of the conversation: another Model has gone on with it.
    fn forget(&self) {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).forget();
    }

    /// Asks until there is an answer, `patience` is over or `within` was spent in requests; pauses do not count.
    ///
    /// `waits` is told what is waited for before each pause; the question is over when this returns. Dropping the
    /// future drops the request.
    async fn ask(
        &self,
        request: &ModelRequest<'_>,
        (within, patience): (Duration, Duration),
        waits: &Waits<'_>,
    ) -> Result<Answer, GivenUp> {
        let paused = waits.idle();
        let patience = Patience { whole: patience, ..self.patience.clone() };
        let mut tries = Tries::new(patience, within, Instant::now());
        loop {
            let remaining = tries.remaining(Instant::now(), waits.idle().saturating_sub(paused));
            let trouble = match self.attempt(request, remaining).await {
                Ok(answer) => return Ok(Answer { model: Some(self.endpoint.name.clone()), ..answer }),
                Err(trouble) => trouble,
            };
            let (pace, message) = match trouble {
                Trouble::Unwanted(extra) => {
                    tracing::info!(model = self.endpoint.name, "the server does not take {extra:?}: it is left out");
                    self.refused.lock().unwrap_or_else(PoisonError::into_inner).add(extra);
                    continue;
                }
                Trouble::Unreadable { message } => return Err(self.given_up(ModelFailure::Unreadable, &message)),
                Trouble::TooLong { message } => return Err(self.given_up(ModelFailure::TooLong, &message)),
                Trouble::Refused { message } => return Err(self.given_up(ModelFailure::Unavailable, &message)),
                Trouble::Missing(ref missing) => (Pace::Missing, missing.to_string()),
                Trouble::Passing { pace, ref message } => (pace, message.clone()),
            };
            let Some(pause) = tries.pause(pace, Instant::now(), waits.idle().saturating_sub(paused)) else {
                let given_up = self.given_up(ModelFailure::Unavailable, &message);
                return Err(GivenUp { tried: Some(tries.to_string()), ..given_up });
            };
            tracing::warn!(model = self.endpoint.name, pause = ?pause, "{message}");
            let waiting = match trouble {
                Trouble::Missing(missing) => missing.into(),
                _ => ExternalWait::ModelUnavailable { message: self.clause(&message) },
            };
            waits.pause(waiting, pause).await;
        }
    }

    async fn attempt(&self, request: &ModelRequest<'_>, remaining: Duration) -> Result<Answer, Trouble> {
        let key = Key::read(self.endpoint.api_key.as_ref())?;
        self.redactor.learn(&self.endpoint.name, key.secret().as_bytes());
        self.onlooker.sees(|| Progress::Asked(request.stage));
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let body = self.body(request, &refused).map_err(|error| Trouble::Refused {
            message: format!("cannot be asked: the request cannot be written: {error}"),
        })?;
        // How long nothing may come; however much comes, the question has its end.
        let silence = Duration::from_secs(self.endpoint.timeout_seconds).min(remaining);
        let http = self.transports.client(&self.endpoint)?;
        let mut sending = http.post(&self.url).timeout(remaining).header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in wire::headers(self.endpoint.provider, &key) {
            sending = sending.header(name, value);
        }
        let sent = timeout(silence, sending.send()).await.map_err(|_| trouble::silent(silence))?;
        let response = sent.map_err(|error| trouble::transport(&error, silence))?;
        if response.status().is_success() {
            return self.read(response, silence).await;
        }
        let refusal =
            timeout(silence, Refusal::read(response, &self.redactor)).await.map_err(|_| trouble::silent(silence))?;
        let says = refusal.of_the_request();
        match says.and_then(|says| refused.meant(self.endpoint.provider, request, says)) {
            Some(extra) => Err(Trouble::Unwanted(extra)),
            None => Err(refusal.sort()),
        }
    }

    /// A conversation has one main loop; every other stage asks a question of its own.
    fn body(&self, request: &ModelRequest<'_>, refused: &Refused) -> serde_json::Result<Bytes> {
        let asking = Asking { endpoint: &self.endpoint, user: &self.user, request, refused };
        match request.stage {
            Stage::Plan => self.history.lock().unwrap_or_else(PoisonError::into_inner).body(asking),
            // The words of the Skill that these hold went through no event, as those of the main loop's prompt did.
            Stage::Intent | Stage::Selection | Stage::Finalization | Stage::Polish => {
                let body = history::body(asking)?;
                Ok(match self.redactor.json_bytes(&body) {
                    Cow::Borrowed(_) => body,
                    Cow::Owned(redacted) => redacted.into(),
                })
            }
        }
    }

    /// Reads an answer, streamed or whole: a server that does not stream says so by what it sends.
    async fn read(&self, response: reqwest::Response, silence: Duration) -> Result<Answer, Trouble> {
        let provider = self.endpoint.provider;
        if stream::is_one(&response) {
            return stream::read(response, wire::fold(provider), silence, (&self.redactor, &self.onlooker)).await;
        }
        let body = http::read_steadily(response, MAX_ANSWER, silence).await.map_err(|error| trouble::body(&error))?;
        wire::read(provider, &body).map_err(|no_answer| no_answer.trouble(&self.redactor))
    }

    fn given_up(&self, kind: ModelFailure, message: &str) -> GivenUp {
        GivenUp { failure: Failure { kind, message: sentence(&self.clause(message)) }, tried: None }
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
pub fn read_answer(provider: bloomery_crds::v1alpha1::ModelProvider, body: &[u8]) -> Result<Answer, String> {
    wire::read(provider, body).map_err(|no_answer| format!("{:?}", no_answer.trouble(&Redactor::default())))
}

#[cfg(test)]
mod tests;
