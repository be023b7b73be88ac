//! The Models of a Job, by name: that of the main loop, and those of stages that have their own.

use super::{Client, Failure, Patience};
use crate::http;
use crate::redact::Redactor;
use crate::waits::Waits;
use bloomery_crds::report::Waiting;
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::{Answer, ModelFailure};
use bloomery_engine::step::ModelRequest;
use std::collections::BTreeMap;
use std::time::Duration;

/// One client for each Model.
#[derive(Debug)]
pub struct Clients(BTreeMap<String, Client>);

impl Clients {
    /// Makes the clients; nothing is asked yet.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub fn new(
        endpoints: &[ModelEndpoint],
        job_uid: &str,
        patience: &Patience,
        redactor: &Redactor,
    ) -> Result<Self, http::Error> {
        let client = |endpoint: &ModelEndpoint| {
            let client = Client::new(endpoint, job_uid, patience.clone(), redactor.clone());
            client.map(|client| (endpoint.name.clone(), client))
        };
        endpoints.iter().map(client).collect::<Result<_, _>>().map(Self)
    }

    /// Says which key of a Model is not in its Secret yet.
    pub fn missing(&self, model: &str) -> Option<Waiting> {
        self.0.get(model)?.missing()
    }

    /// Asks the Model that the request names; see [`Client::complete`].
    ///
    /// # Errors
    /// As [`Client::complete`] has them, and where the Job has no such Model.
    pub async fn complete(
        &self,
        request: &ModelRequest<'_>,
        within: Duration,
        waits: &Waits<'_>,
    ) -> Result<Answer, Failure> {
        match self.0.get(request.model) {
            Some(client) => client.complete(request, within, waits).await,
            None => Err(Failure {
                kind: ModelFailure::Unavailable,
                message: format!("The Job was not told of the Model `{}`, so it was not asked.", request.model),
            }),
        }
    }
}
