//! Implements the driver's trait for the real models.

use super::environment::Model;
use bloomery_crds::report::ExternalWait;
use bloomery_engine::Event;
use bloomery_engine::step::ModelRequest;
use bloomery_http::Pauses;
use bloomery_models as model;
use std::time::Duration;

impl Model for model::Clients {
    fn missing_key(&self, model: &str) -> Option<ExternalWait> {
        self.missing_secret(model)
    }

    async fn complete(&self, request: &ModelRequest<'_>, within: Duration, waits: &Pauses<'_>) -> Event {
        match model::Clients::complete(self, request, within, waits).await {
            Ok(answer) => Event::ModelAnswered { answer },
            Err(model::Error { kind, message }) => Event::ModelFailed { kind, message },
        }
    }
}
