//! The Models of a Job, by name: that of the main loop, those of stages that have their own, and the fallbacks of each.

mod turns;

use super::transports::Transports;
use super::{Client, Failure, Patience};
use crate::http;
use crate::progress::Onlooker;
use crate::waits::Waits;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use bloomery_redact::Redactor;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use turns::Turns;

/// How long a Model that gave no answer is asked after the others, before it is first again. Else each question would
/// wait for it anew.
const REST: Duration = Duration::from_mins(5);

/// One client for each Model.
#[derive(Debug)]
pub struct Clients {
    models: BTreeMap<String, Client>,
    patience: Duration,
    /// When a Model that has others beside it gave no answer last.
    silent: Mutex<BTreeMap<String, Instant>>,
}

impl Clients {
    /// Makes the clients; nothing is asked yet.
    ///
    /// # Errors
    /// If one of them has no URL that can be asked.
    pub fn new(
        endpoints: &[ModelEndpoint],
        job_uid: &str,
        patience: &Patience,
        redactor: &Redactor,
    ) -> Result<Self, http::Error> {
        let transports = Arc::<Transports>::default();
        let client = |endpoint: &ModelEndpoint| {
            Client::new(endpoint, job_uid, patience.clone(), transports.clone(), redactor.clone())
                .map(|client| (endpoint.name.clone(), client))
        };
        let models = endpoints.iter().map(client).collect::<Result<_, _>>()?;
        Ok(Self { models, patience: patience.whole, silent: Mutex::default() })
    }

    /// Lets somebody look on while Models are asked.
    #[must_use]
    pub fn seen_by(mut self, onlooker: &Onlooker) -> Self {
        for client in self.models.values_mut() {
            client.onlooker = onlooker.clone();
        }
        self
    }

    /// Says which key of a Model is not in its Secret yet, where none of its fallbacks could be asked instead.
    pub fn missing(&self, model: &str) -> Option<ExternalWait> {
        let mut missing = self.chain(model).into_iter().map(Client::missing);
        let first = missing.next()??;
        missing.all(|other| other.is_some()).then_some(first)
    }

    /// Asks the Model that the request names, or its fallbacks, until there is an answer, patience is over or `within`
    /// was spent in requests; pauses do not count. `waits` is told what is waited for before each pause. Dropping the
    /// future drops the request.
    ///
    /// With fallbacks, the Models are asked by turns: each for a part of the patience only, and again as long as all of
    /// it lasts.
    ///
    /// # Errors
    /// [`ModelFailure::Unreadable`] for an answer that cannot be read and [`ModelFailure::TooLong`] for a conversation
    /// that the model does not take, whichever Model it was; [`ModelFailure::Unavailable`] where asking again is of no
    /// use, or was of none, or the Job has no such Model.
    pub async fn complete(
        &self,
        request: &ModelRequest<'_>,
        within: Duration,
        waits: &Waits<'_>,
    ) -> Result<Answer, Failure> {
        let chain = self.chain(request.model);
        let mut turns = Turns::new(chain.iter().map(|client| client.endpoint.name.as_str()).collect(), self.patience);
        let (began, paused) = (Instant::now(), waits.idle());
        while let Some(turn) = turns.next(began.elapsed(), &self.resting()) {
            let Some(client) = self.models.get(turn.model) else { break };
            let spent = began.elapsed().saturating_sub(waits.idle().saturating_sub(paused));
            let left = within.saturating_sub(spent);
            // Boxed: it would make every future that waits for it as large.
            let given_up = match Box::pin(client.ask(request, (left, turn.patience), waits)).await {
                Ok(answer) => {
                    self.answered(&chain, turn.model);
                    return Ok(answer);
                }
                Err(given_up) => given_up,
            };
            if chain.len() == 1 || !given_up.is_of_this_model() {
                return Err(given_up.failure());
            }
            tracing::warn!(model = turn.model, "{}", given_up.failure.message);
            self.silent.lock().unwrap_or_else(PoisonError::into_inner).insert(turn.model.to_owned(), Instant::now());
            let is_final = given_up.tried.is_none();
            turns.failed(turn.model, given_up.failure.message, is_final);
            if spent >= within {
                break;
            }
        }
        let message = if chain.is_empty() {
            format!("The Job was not told of the Model `{}`, so it was not asked.", request.model)
        } else {
            turns.told(began.elapsed())
        };
        Err(Failure { kind: ModelFailure::Unavailable, message })
    }

    /// A Model and its fallbacks.
    fn chain(&self, model: &str) -> Vec<&Client> {
        let first = self.models.get(model);
        let fallbacks = first.into_iter().flat_map(|first| &first.endpoint.fallback);
        first.into_iter().chain(fallbacks.filter_map(|name| self.models.get(name))).collect()
    }

    /// The Models that gave no answer a moment ago.
    fn resting(&self) -> Vec<String> {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.retain(|_, since| since.elapsed() < REST);
        silent.keys().cloned().collect()
    }

    fn answered(&self, chain: &[&Client], model: &str) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).remove(model);
        chain.iter().filter(|client| client.endpoint.name != model).for_each(|client| client.forget());
    }
}

#[cfg(test)]
mod tests;
