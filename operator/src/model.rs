//! The Model controller: says that a Model was accepted.
//!
//! More cannot be said here. The operator has no verb on a tenant's Secrets and opens no connection into or
//! out of a tenant, so a missing key or a model that does not answer is found by the workers that use it, and
//! stands in their Jobs (`SecretMissing`, `ModelUnavailable`).

use crate::context::Context;
use crate::controller::{Controller, wakes};
use crate::error::Error;
use bloomery_crds::conditions::{Health, Reason, merge};
use bloomery_crds::v1alpha1::{Model, ModelSpec, ModelStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How many Models are worked on at the same time.
const CONCURRENCY: u16 = 4;

/// Reconciles Models until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let cache = &context.caches.models;
    let store = cache.store().clone();
    let wakes = vec![wakes(cache.changes(), &store, |model| vec![ObjectRef::from_obj(model)])];
    let controller = Controller { name: "model", store, wakes, concurrency: CONCURRENCY };
    controller.run(context, reconcile, shutdown).await;
}

async fn reconcile(model: Model, context: Arc<Context>) -> Result<Action, Error> {
    if model.metadata.deletion_timestamp.is_none() {
        let status = compute(&model, &Time(Timestamp::now()));
        context.statuses.replace(&model, status).await?;
    }
    Ok(Action::await_change())
}

/// Computes the status. Where nothing but time would change it equals the one that stands.
fn compute(model: &Model, now: &Time) -> ModelStatus {
    let standing = model.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let generation = model.metadata.generation;
    ModelStatus {
        observed_generation: generation,
        conditions: merge(standing, &health(&model.spec).observations(), generation, now),
    }
}

/// The CRD refuses these when they are applied; a Model that was stored under an older one never met the rule.
fn health(spec: &ModelSpec) -> Health {
    let host = ["https://", "http://"].iter().find_map(|scheme| spec.base_url.strip_prefix(scheme)).unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    if host.is_empty() || host.contains('@') || spec.base_url.contains(['?', '#', ' ']) {
        let message = "spec.baseUrl must be an http or https URL without user, query or fragment, such as https://api.openai.com/v1";
        return Health::Stalled(Reason::Invalid, message.to_owned());
    }
    let message = match &spec.api_key {
        Some(key) => format!(
            "accepted; whether Secret {} has the key {} is seen by the Jobs that use it",
            key.secret_key_ref.name, key.secret_key_ref.key
        ),
        None => "accepted; requests carry no key".to_owned(),
    };
    Health::Ready(Reason::Ready, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::conditions::{ConditionType, find, is_true};
    use rstest::rstest;
    use serde_json::json;

    fn model(base_url: &str) -> Model {
        serde_json::from_value(json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Model",
            "metadata": {"namespace": "acme", "name": "default", "generation": 3},
            "spec": {
                "provider": "openai", "model": "gpt", "baseUrl": base_url,
                "apiKey": {"secretKeyRef": {"name": "llm", "key": "token"}},
            },
        }))
        .unwrap()
    }

    #[test]
    fn an_accepted_model_says_who_finds_out_about_its_key_and_is_quiet() {
        let mut model = model("https://api.openai.com/v1");
        let status = compute(&model, &Time(Timestamp::UNIX_EPOCH));
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!((ready.status.as_str(), ready.observed_generation), ("True", Some(3)));
        assert!(ready.message.contains("Secret llm has the key token"), "{}", ready.message);
        model.status = Some(status.clone());
        assert_eq!(compute(&model, &Time(Timestamp::MAX)), status);
    }

    #[rstest]
    #[case("ftp://api.openai.com/v1")]
    #[case("https:///v1")]
    #[case("https://user@api.openai.com")]
    #[case("https://api.openai.com?x=1")]
    fn an_unusable_url_is_named(#[case] url: &str) {
        let status = compute(&model(url), &Time(Timestamp::UNIX_EPOCH));
        assert!(is_true(&status.conditions, ConditionType::Stalled));
    }
}
