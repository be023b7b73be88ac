//! The clients of all Models of a Job: the Model of the main loop, the Models of other stages, and their fallbacks.

mod rotation;

use crate::client::Client;
use crate::error::Error;
use crate::retry_policy::RetryPolicy;
use crate::transports::Transports;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use bloomery_http::Pauses;
use bloomery_http::address::AddressPolicy;
use bloomery_http::progress::ProgressObserver;
use bloomery_redact::Redactor;
use rotation::Rotation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The time during which a Model that gave no answer is asked after the others. Otherwise every request would wait for it again.
const DEPRIORITIZED_FOR: Duration = Duration::from_mins(5);

/// The clients of a Job's Models.
#[derive(Debug)]
pub struct Clients {
    models: BTreeMap<String, Client>,
    retry_time: Duration,
    /// The Models that gave no answer, each with the time of its last failure. Only Models with fallbacks, and fallbacks, are recorded.
    unanswered: Mutex<BTreeMap<String, Instant>>,
}

impl Clients {
    /// Creates the clients without sending a request. They connect only to what `addresses` allows.
    ///
    /// # Errors
    /// If the URL of a Model is not an http or https URL.
    pub fn new(
        endpoints: &[ModelEndpoint],
        job_uid: &str,
        retry_policy: &RetryPolicy,
        addresses: AddressPolicy,
        redactor: &Redactor,
    ) -> Result<Self, bloomery_http::Error> {
        let transports = Arc::new(Transports::new(addresses));
        let client = |endpoint: &ModelEndpoint| {
            Client::new(endpoint, job_uid, retry_policy.clone(), transports.clone(), redactor.clone())
                .map(|client| (endpoint.name.clone(), client))
        };
        let models = endpoints.iter().map(client).collect::<Result<_, _>>()?;
        Ok(Self { models, retry_time: retry_policy.total, unanswered: Mutex::default() })
    }

    /// Reports the progress of requests to `observer`.
    #[must_use]
    pub fn with_observer(mut self, observer: &ProgressObserver) -> Self {
        for client in self.models.values_mut() {
            client.observer = observer.clone();
        }
        self
    }

    /// Returns the missing key of a Model, if the keys of all its fallbacks are missing, too.
    pub fn missing_secret(&self, model: &str) -> Option<ExternalWait> {
        let mut missing = self.chain(model).into_iter().map(Client::missing_secret);
        let first = missing.next()??;
        missing.all(|other| other.is_some()).then_some(first)
    }

    /// Asks the Model that the request names, and retries until it answers, or until the total time of the [`RetryPolicy`] or `within`
    /// is over. `within` limits the time in requests, without the pauses between them.
    ///
    /// A Model and its fallbacks are asked in turn, each for a part of the total time. `pauses` reports each pause. Dropping the future
    /// cancels the request.
    ///
    /// # Errors
    /// - [`ModelFailure::Unreadable`] if a Model gave an answer that cannot be read.
    /// - [`ModelFailure::TooLong`] if the conversation exceeds the context window of a Model.
    /// - [`ModelFailure::Unavailable`] if a retry would fail again, or no retry succeeded, or the Job has no such Model.
    pub async fn complete(
        &self,
        request: &ModelRequest<'_>,
        within: Duration,
        pauses: &Pauses<'_>,
    ) -> Result<Answer, Error> {
        let chain = self.chain(request.model);
        let names = chain.iter().map(|client| client.endpoint.name.as_str()).collect();
        let mut rotation = Rotation::new(names, self.retry_time);
        let (began, total_before) = (Instant::now(), pauses.total());
        let time_paused = || pauses.total().saturating_sub(total_before);
        while let Some(slot) = rotation.next(began.elapsed(), &self.deprioritized()) {
            let Some(client) = self.models.get(slot.model) else { break };
            let in_requests = began.elapsed().saturating_sub(time_paused());
            let left = within.saturating_sub(in_requests);
            // Boxed, because otherwise every future that awaits it would be large, too.
            let failed = match Box::pin(client.ask(request, (left, slot.retry_time), pauses)).await {
                Ok(answer) => {
                    self.note_answer(&chain, slot.model);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            if chain.len() == 1 || !failed.concerns_only_this_model() {
                return Err(failed.into_final());
            }
            tracing::warn!(model = slot.model, "{}", failed.error.message);
            self.note_no_answer(slot.model);
            let is_final = failed.tries.is_none();
            rotation.note_failure(slot.model, failed.error.message, is_final);
            if left.is_zero() {
                break;
            }
        }
        let message = if chain.is_empty() {
            format!("The Job has no Model `{}`, so no Model was asked.", request.model)
        } else {
            rotation.summary(began.elapsed())
        };
        Err(Error { kind: ModelFailure::Unavailable, message })
    }

    /// Returns a Model and its fallbacks.
    fn chain(&self, model: &str) -> Vec<&Client> {
        let first = self.models.get(model);
        let fallbacks = first.into_iter().flat_map(|first| &first.endpoint.fallback);
        first.into_iter().chain(fallbacks.filter_map(|name| self.models.get(name))).collect()
    }

    /// Returns the Models that recently gave no answer.
    fn deprioritized(&self) -> Vec<String> {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.retain(|_, since| since.elapsed() < DEPRIORITIZED_FOR);
        unanswered.keys().cloned().collect()
    }

    fn note_no_answer(&self, model: &str) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.insert(model.to_owned(), Instant::now());
    }

    /// Records that a Model answered. The other Models discard their written requests, because this Model continued the conversation.
    fn note_answer(&self, chain: &[&Client], model: &str) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(model);
        chain.iter().filter(|client| client.endpoint.name != model).for_each(|client| client.clear_request());
    }
}

#[cfg(test)]
mod tests;
