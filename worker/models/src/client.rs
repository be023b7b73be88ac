//! The client of one Model.

use crate::error::{Error, ModelError};
use crate::error_response::{ErrorResponse, from_protocol_error};
use crate::limits::MAX_ANSWER_BYTES;
use crate::optional_fields::UnsupportedFields;
use crate::protocol::RequestContext;
use crate::request_error::{self, RetryDelay};
use crate::request_writer::{self, RequestWriter};
use crate::retry_policy::{RetryPolicy, Tries};
use crate::transports::Transports;
use crate::{provider, stream};
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::text::{bounded, sentence};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use bloomery_http::credential::{self, Credential};
use bloomery_http::progress::{Progress, ProgressObserver};
use bloomery_http::{Pauses, body, is_https};
use bloomery_redact::Redactor;
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The longest clause about a failure, in bytes. The clause becomes an event, a condition, and most of an outcome's message.
const MAX_CLAUSE_BYTES: usize = 896;

/// A client of one Model, for one Job.
#[derive(Debug)]
pub(crate) struct Client {
    transports: Arc<Transports>,
    pub(crate) endpoint: ModelEndpoint,
    url: String,
    user: String,
    pub(crate) retry_policy: RetryPolicy,
    redactor: Redactor,
    /// Writes the requests of the main loop.
    request_writer: Mutex<RequestWriter>,
    /// The request fields that the server does not support.
    unsupported: Mutex<UnsupportedFields>,
    pub(crate) observer: ProgressObserver,
}

impl Client {
    /// Creates a client without sending a request.
    ///
    /// Every request carries the Job's UID as `user`. The UID is stable, so a provider can route a conversation to the server that
    /// has cached its prefix, and a person can find the Job of a request. The UID reveals nothing about a person. The client registers
    /// the key with `redactor` before it uses the key.
    pub(crate) fn new(
        endpoint: &ModelEndpoint,
        job_uid: &str,
        retry_policy: RetryPolicy,
        transports: Arc<Transports>,
        redactor: Redactor,
    ) -> Result<Self, bloomery_http::Error> {
        is_https(&endpoint.base_url)?;
        Ok(Self {
            transports,
            url: format!("{}/{}", endpoint.base_url.trim_end_matches('/'), provider::request_path(endpoint.provider)),
            endpoint: endpoint.clone(),
            user: job_uid.to_owned(),
            retry_policy,
            redactor,
            request_writer: Mutex::default(),
            unsupported: Mutex::default(),
            observer: ProgressObserver::default(),
        })
    }

    /// Returns the key that the Model needs and that does not exist yet. Each call reads the Secret again, so a new key needs no restart.
    pub(crate) fn missing_secret(&self) -> Option<ExternalWait> {
        match Credential::read(self.endpoint.api_key.as_ref()) {
            Err(credential::Error::Missing(missing)) => Some(missing.into()),
            Ok(_) | Err(credential::Error::Unusable { .. }) => None,
        }
    }

    /// Discards the written request, after another Model continued the conversation.
    pub(crate) fn clear_request(&self) {
        self.request_writer.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Asks the Model, and retries until it answers, or until `retry_time` or `within` is over. `retry_time` counts from the first
    /// failure. `within` limits the time in requests, without the pauses between them.
    ///
    /// `pauses` reports each pause. Dropping the future cancels the request.
    pub(crate) async fn ask(
        &self,
        request: &ModelRequest<'_>,
        (within, retry_time): (Duration, Duration),
        pauses: &Pauses<'_>,
    ) -> Result<Answer, ModelError> {
        let total_before = pauses.total();
        let time_paused = || pauses.total().saturating_sub(total_before);
        let retry_policy = RetryPolicy { total: retry_time, ..self.retry_policy.clone() };
        let mut tries = Tries::new(retry_policy, within, Instant::now());
        loop {
            let remaining = tries.remaining(Instant::now(), time_paused());
            let error = match self.request_once(request, remaining).await {
                Ok(answer) => return Ok(Answer { model: Some(self.endpoint.name.clone()), ..answer }),
                Err(error) => error,
            };
            let (delay, message) = match error {
                request_error::Error::UnsupportedField(field) => {
                    tracing::info!(
                        model = self.endpoint.name,
                        "the server does not support {field:?}, so later requests omit it"
                    );
                    self.unsupported.lock().unwrap_or_else(PoisonError::into_inner).add(field);
                    continue;
                }
                request_error::Error::Unreadable { message } => {
                    return Err(self.failed(ModelFailure::Unreadable, &message));
                }
                request_error::Error::TooLong { message } => return Err(self.failed(ModelFailure::TooLong, &message)),
                request_error::Error::Refused { message } => {
                    return Err(self.failed(ModelFailure::Unavailable, &message));
                }
                request_error::Error::Temporary { delay: RetryDelay::WrongKey, message }
                    if !self.retry_policy.awaits_corrected_key =>
                {
                    return Err(self.failed(ModelFailure::Unavailable, &message));
                }
                request_error::Error::SecretMissing(ref missing) => (RetryDelay::SecretMissing, missing.to_string()),
                request_error::Error::Temporary { delay, ref message } => (delay, message.clone()),
            };
            let Some(delay) = tries.next_delay(delay, Instant::now(), time_paused()) else {
                let failed = self.failed(ModelFailure::Unavailable, &message);
                return Err(ModelError { tries: Some(tries.to_string()), ..failed });
            };
            tracing::warn!(model = self.endpoint.name, "{message}. The next try is in {:.1} s", delay.as_secs_f64());
            let waiting = match error {
                request_error::Error::SecretMissing(missing) => missing.into(),
                _ => ExternalWait::ModelUnavailable { message: self.clause(&message) },
            };
            pauses.pause(waiting, delay).await;
        }
    }

    /// Sends the request once, and reads the answer. `remaining` limits the time of both.
    async fn request_once(
        &self,
        request: &ModelRequest<'_>,
        remaining: Duration,
    ) -> Result<Answer, request_error::Error> {
        let key = Credential::read(self.endpoint.api_key.as_ref())?;
        self.redactor.learn(&self.endpoint.name, key.secret().as_bytes());
        self.observer.notify(|| Progress::ModelRequested(request.stage));
        let unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let body = self.body(request, &unsupported).map_err(|error| request_error::Error::Refused {
            message: format!("was not asked: the request cannot be serialized: {error}"),
        })?;
        // `silence` limits the time without any part of the response, and `remaining` limits the whole request.
        let silence = Duration::from_secs(self.endpoint.timeout_seconds).min(remaining);
        let http = self.transports.client(&self.endpoint)?;
        let mut sending = http.post(&self.url).timeout(remaining).header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in provider::headers(self.endpoint.provider, &key) {
            sending = sending.header(name, value);
        }
        let sent = timeout(silence, sending.send()).await.map_err(|_| request_error::Error::stalled(silence))?;
        let response = sent.map_err(|error| request_error::Error::from_transport(&error, silence))?;
        if response.status().is_success() {
            return self.read(response, silence).await;
        }
        let refusal = timeout(silence, ErrorResponse::read(response, &self.redactor));
        let refusal = refusal.await.map_err(|_| request_error::Error::stalled(silence))?;
        let objection = refusal.request_objection();
        match objection.and_then(|text| unsupported.rejected_field(self.endpoint.provider, request, text)) {
            Some(field) => Err(request_error::Error::UnsupportedField(field)),
            None => Err(refusal.classify()),
        }
    }

    /// Writes the body of a request. A request of the main loop continues its conversation. Every other stage sends single requests.
    fn body(&self, request: &ModelRequest<'_>, unsupported: &UnsupportedFields) -> serde_json::Result<Bytes> {
        let context = RequestContext { endpoint: &self.endpoint, user: &self.user, request, unsupported };
        match request.stage {
            Stage::Plan => self.request_writer.lock().unwrap_or_else(PoisonError::into_inner).next_body(context),
            // The prompt of the main loop comes from events, which are redacted. The prompts of these stages are not redacted yet.
            Stage::Intent | Stage::Selection | Stage::Finalization | Stage::Polish => {
                let body = request_writer::single_body(context)?;
                Ok(match self.redactor.redact_json_bytes(&body) {
                    Cow::Borrowed(_) => body,
                    Cow::Owned(redacted) => redacted.into(),
                })
            }
        }
    }

    /// Reads an answer, streamed or whole. The content type decides, because a server may not support streams.
    async fn read(&self, response: reqwest::Response, silence: Duration) -> Result<Answer, request_error::Error> {
        let provider = self.endpoint.provider;
        if stream::is_event_stream(&response) {
            let answer = provider::answer_stream(provider);
            return stream::read(response, answer, silence, (&self.redactor, &self.observer)).await;
        }
        let body = body::read_unless_stalled(response, MAX_ANSWER_BYTES, silence).await;
        let body = body.map_err(|error| request_error::Error::from_body(&error))?;
        provider::read_answer(provider, &body).map_err(|error| from_protocol_error(error, &self.redactor))
    }

    fn failed(&self, kind: ModelFailure, message: &str) -> ModelError {
        ModelError { error: Error { kind, message: sentence(&self.clause(message)) }, tries: None }
    }

    /// Returns a clause that begins with this Model and continues with `message`.
    fn clause(&self, message: &str) -> String {
        let ModelEndpoint { name, model, base_url, .. } = &self.endpoint;
        bounded(&format!("the Model `{name}` ({model} at {base_url}) {message}"), MAX_CLAUSE_BYTES)
    }
}

/// Reads the body of a successful response, for the fuzz targets. The rest of the client only does I/O.
///
/// # Errors
/// If the answer cannot be read. The text describes the error.
#[cfg(fuzzing)]
pub fn read_answer(provider: bloomery_crds::v1alpha1::ModelProvider, body: &[u8]) -> Result<Answer, String> {
    provider::read_answer(provider, body)
        .map_err(|error| format!("{:?}", from_protocol_error(error, &Redactor::default())))
}

#[cfg(test)]
mod tests;
