//! The Model controller: validates a Model and its chain of fallbacks.
//!
//! The operator has no access to a tenant's Secrets and opens no connection to a model. So the workers detect
//! that a key is missing or a model does not answer, and report it in the conditions of their Jobs
//! (`SecretMissing`, `ModelUnavailable`).

use crate::caches::Guarded;
use crate::context::Context;
use crate::controller::{Controller, Wake, wake_on};
use crate::error::Error;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::network::destination::Destination;
use crate::network::egress::Egress;
use crate::tenant::TenantLimits;
use bloomery_crds::conditions::{Health, Reason, merge};
use bloomery_crds::fallback;
use bloomery_crds::v1alpha1::{Model, ModelSpec, ModelStatus};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The maximum number of concurrent reconciles.
const MAX_CONCURRENT_RECONCILES: u16 = 4;

/// Reconciles Models until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let cache = &context.caches.models;
    let store = cache.store().clone();
    let all_models = store.clone();
    let behind_services = store.clone();
    let in_namespaces = store.clone();
    let wakes = vec![
        wake_on(cache.changes(), &store, move |model| affected_models(&all_models, model)),
        wake_on(context.caches.services.changes(), &store, move |service| models_of_service(&behind_services, service)),
        wake_on(context.caches.namespaces.changes(), &store, move |namespace| {
            models_of_namespace(&in_namespaces, namespace)
        }),
    ];
    let controller = Controller { name: "model", store, wakes, concurrency: MAX_CONCURRENT_RECONCILES };
    controller.run(context, reconcile, shutdown).await;
}

/// A changed Model, and the Models whose fallbacks may lead to it.
fn affected_models(store: &Store<Guarded<Model>>, changed: &Guarded<Model>) -> Vec<Wake<Model>> {
    let namespace = &changed.meta().namespace;
    let may_depend_on_it = |other: &Guarded<Model>| {
        &other.meta().namespace == namespace && other.0.as_ref().is_ok_and(|other| !other.spec.fallback.is_empty())
    };
    let others = store.state_filter(may_depend_on_it);
    others.iter().map(|other| ObjectRef::from_obj(other.as_ref())).chain([ObjectRef::from_obj(changed)]).collect()
}

/// The Models behind a Service. Its type decides whether workers may connect to it.
fn models_of_service(store: &Store<Guarded<Model>>, service: &Service) -> Vec<Wake<Model>> {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let is_behind = |model: &Model| {
        let urls = [Some(&model.spec.base_url), model.spec.proxy.as_ref()].into_iter().flatten();
        let mut destinations = urls.filter_map(|url| Destination::of_url(url));
        destinations.any(|destination| destination.is_service(&namespace, &name))
    };
    let found = store.state_filter(|model| {
        model.meta().namespace.as_deref() == Some(namespace.as_str()) && model.0.as_ref().is_ok_and(is_behind)
    });
    found.iter().map(|model| ObjectRef::from_obj(model.as_ref())).collect()
}

/// The Models of a namespace, whose annotations limit them.
fn models_of_namespace(store: &Store<Guarded<Model>>, namespace: &PartialObjectMeta<Namespace>) -> Vec<Wake<Model>> {
    let found = store.state_filter(|model| model.meta().namespace == namespace.metadata.name);
    found.iter().map(|model| ObjectRef::from_obj(model.as_ref())).collect()
}

/// The fallbacks that a Model names. A Model that cannot be read names none; an Event of that Model reports this.
pub fn fallbacks(model: &Guarded<Model>) -> Vec<String> {
    model.0.as_ref().map(|model| model.spec.fallback.clone()).unwrap_or_default()
}

async fn reconcile(model: Model, context: Arc<Context>) -> Result<Action, Error> {
    if model.metadata.deletion_timestamp.is_none() {
        let namespace = model.namespace().unwrap_or_default();
        let find = |name: &str| context.caches.models.get(&namespace, name).map(|model| fallbacks(&model));
        let refusal = |url: &str| egress_refusal(&context, &namespace, url);
        let limits = context.tenant_limits(&namespace);
        let status = compute(&model, find, refusal, &limits, &Time(Timestamp::now()));
        context.statuses.replace(&model, status).await?;
    }
    Ok(Action::await_change())
}

/// Returns the reason why workers of a namespace may not connect to a URL.
fn egress_refusal(context: &Context, namespace: &str, url: &str) -> Option<String> {
    let services = |name: &str| context.caches.services.get(namespace, name);
    Egress::new(&context.settings, namespace, &services).refusal(&Destination::of_url(url)?)
}

/// Computes the status. Returns the current status if only times would change. `find` returns the fallbacks that another
/// Model names; none if there is no such Model. `refusal` returns the reason why workers may not connect to a URL.
fn compute(
    model: &Model,
    find: impl Fn(&str) -> Option<Vec<String>>,
    refusal: impl Fn(&str) -> Option<String>,
    limits: &TenantLimits,
    now: &Time,
) -> ModelStatus {
    let current = model.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let generation = model.metadata.generation;
    ModelStatus {
        observed_generation: generation,
        conditions: merge(current, &health(model, find, refusal, limits).observations(), generation, now),
    }
}

/// Computes the health. The CRD enforces the rules of the URL at admission, but a Model that was stored under an older CRD
/// may violate them.
fn health(
    model: &Model,
    find: impl Fn(&str) -> Option<Vec<String>>,
    refusal: impl Fn(&str) -> Option<String>,
    limits: &TenantLimits,
) -> Health {
    let (spec, name) = (&model.spec, model.name_any());
    let host = ["https://", "http://"].iter().find_map(|scheme| spec.base_url.strip_prefix(scheme)).unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    if host.is_empty() || host.contains('@') || spec.base_url.contains(['?', '#', ' ']) {
        let message = "spec.baseUrl must be an http or https URL without user, query or fragment, such as https://api.openai.com/v1";
        return Health::Stalled(Reason::Invalid, message.to_owned());
    }
    let urls = [("baseUrl", Some(&spec.base_url)), ("proxy", spec.proxy.as_ref())];
    let mut refused = urls.into_iter().filter_map(|(field, url)| Some(format!("spec.{field}: {}", refusal(url?)?)));
    if let Some(fault) = refused.next() {
        return Health::Stalled(Reason::EgressNotAllowed, fault);
    }
    // The admission policy refuses such a Model, but a limit may have been lowered since.
    let exceeded = limits.exceeded_by_model(spec);
    if !exceeded.is_empty() {
        return Health::Stalled(Reason::BeyondLimit, join_sentences(&exceeded, MAX_LIST_BYTES));
    }
    // The fallbacks of this Model come from the reconciled object, because the cached one may differ.
    let fallbacks =
        fallback::resolve(&name, |other| if other == name { Some(spec.fallback.clone()) } else { find(other) });
    match fallbacks {
        Ok(fallbacks) => Health::Ready(Reason::Ready, accepted_message(spec, &fallbacks)),
        Err(fault @ fallback::Error::Missing { .. }) => Health::Reconciling(
            Reason::ModelNotFound,
            format!("{fault}: create it, and this Model becomes ready by itself"),
        ),
        Err(fault @ (fallback::Error::Cycle(_) | fallback::Error::TooMany)) => {
            Health::Stalled(Reason::Invalid, fault.to_string())
        }
    }
}

fn accepted_message(spec: &ModelSpec, fallbacks: &[String]) -> String {
    let key = match &spec.api_key {
        Some(key) => format!(
            "accepted; the Jobs that use it check that Secret {} has the key {}",
            key.secret_key_ref.name, key.secret_key_ref.key
        ),
        None => "accepted; requests carry no key".to_owned(),
    };
    if fallbacks.is_empty() { key } else { format!("{key}; its fallbacks are {}", fallbacks.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TenantSettings;
    use bloomery_crds::conditions::{ConditionType, find, is_true};
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;
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
    fn the_message_names_the_secret_and_a_second_compute_changes_nothing() {
        let mut model = model("https://api.openai.com/v1");
        let status = computed(&model, nothing_else, allowed);
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!((ready.status.as_str(), ready.observed_generation), ("True", Some(3)));
        assert!(ready.message.contains("Secret llm has the key token"), "{}", ready.message);
        model.status = Some(status.clone());
        let later = compute(&model, nothing_else, allowed, &TenantLimits::default(), &Time(Timestamp::MAX));
        assert_eq!(later, status);
    }

    #[rstest]
    #[case("ftp://api.openai.com/v1")]
    #[case("https:///v1")]
    #[case("https://user@api.openai.com")]
    #[case("https://api.openai.com?x=1")]
    fn an_unusable_url_is_named(#[case] url: &str) {
        let status = computed(&model(url), nothing_else, allowed);
        assert!(is_true(&status.conditions, ConditionType::Stalled));
    }

    /// Workers may connect to everything.
    fn allowed(_: &str) -> Option<String> {
        None
    }

    #[rstest]
    #[case::url("https://api.openai.com/v1", "spec.baseUrl: no")]
    #[case::proxy("http://proxy.example:3128", "spec.proxy: no")]
    fn a_url_that_workers_may_not_connect_to_stalls_the_model(#[case] refused: &str, #[case] expected: &str) {
        let mut model = model("https://api.openai.com/v1");
        model.spec.proxy = Some("http://proxy.example:3128".into());
        let refusal = |url: &str| (url == refused).then(|| "no".to_owned());
        let status = computed(&model, nothing_else, refusal);
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("EgressNotAllowed", expected));
        assert!(is_true(&status.conditions, ConditionType::Stalled));
    }

    /// Computes the status in a namespace without limits, at the start of the clock.
    fn computed(
        model: &Model,
        find: impl Fn(&str) -> Option<Vec<String>>,
        refusal: impl Fn(&str) -> Option<String>,
    ) -> ModelStatus {
        compute(model, find, refusal, &TenantLimits::default(), &Time(Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn a_model_beyond_a_limit_of_its_namespace_is_stalled() {
        let annotations = [("bloomery.dev/allowed-models".to_owned(), "gpt-5-mini,claude-*".to_owned())].into();
        let limits = TenantLimits::new(&TenantSettings::default(), &annotations);
        let model = model("https://api.openai.com/v1");
        let status = compute(&model, nothing_else, allowed, &limits, &Time(Timestamp::UNIX_EPOCH));
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!(ready.reason, "BeyondLimit");
        assert_eq!(ready.message, "spec.model: the namespace may use the models gpt-5-mini or claude-*, and not gpt.");
        assert!(is_true(&status.conditions, ConditionType::Stalled));
    }

    #[test]
    fn a_namespace_wakes_its_models() {
        let (store, mut writer) = store();
        for (name, namespace) in [("fast", "acme"), ("large", "other")] {
            let mut model = falling_back(&[]);
            (model.metadata.name, model.metadata.namespace) = (Some(name.into()), Some(namespace.into()));
            writer.apply_watcher_event(&Event::Apply(Guarded(Ok(model))));
        }
        let mut changed = PartialObjectMeta::<Namespace>::default();
        changed.metadata.name = Some("acme".into());
        let woken: Vec<String> = models_of_namespace(&store, &changed).into_iter().map(|model| model.name).collect();
        assert_eq!(woken, ["fast"]);
    }

    /// A namespace with one Model.
    fn nothing_else(_: &str) -> Option<Vec<String>> {
        None
    }

    fn falling_back(names: &[&str]) -> Model {
        let mut model = model("https://api.openai.com/v1");
        model.spec.fallback = names.iter().map(|name| (*name).to_owned()).collect();
        model
    }

    #[test]
    fn the_message_lists_all_fallbacks() {
        let others = |name: &str| match name {
            "fast" => Some(vec!["local".to_owned()]),
            "local" => Some(Vec::new()),
            _ => None,
        };
        let status = computed(&falling_back(&["fast"]), others, allowed);
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert_eq!(ready.status, "True");
        assert!(ready.message.ends_with("its fallbacks are fast, local"), "{}", ready.message);
    }

    #[test]
    fn a_missing_fallback_is_reconciling_and_a_cycle_is_stalled() {
        let status = computed(&falling_back(&["fast"]), nothing_else, allowed);
        assert!(is_true(&status.conditions, ConditionType::Reconciling));
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert!(ready.reason == "ModelNotFound" && ready.message.contains("the Model fast"), "{ready:?}");
        let back = |_: &str| Some(vec!["default".to_owned()]);
        let status = computed(&falling_back(&["fast"]), back, allowed);
        assert!(is_true(&status.conditions, ConditionType::Stalled));
        let ready = find(&status.conditions, ConditionType::Ready).unwrap();
        assert!(ready.message.contains("default -> fast -> default"), "{}", ready.message);
    }

    #[test]
    fn a_change_wakes_the_models_with_fallbacks_in_its_namespace() {
        let (store, mut writer) = store();
        let named = |name: &str, namespace: &str, fallback: &[&str]| {
            let mut model = falling_back(fallback);
            model.metadata.name = Some(name.into());
            model.metadata.namespace = Some(namespace.into());
            Guarded(Ok(model))
        };
        let changed = named("fast", "acme", &[]);
        for model in [named("large", "acme", &["x"]), named("kind", "acme", &[]), named("large", "other", &["fast"])] {
            writer.apply_watcher_event(&Event::Apply(model));
        }
        let mut woken: Vec<String> = affected_models(&store, &changed)
            .iter()
            .map(|wake| format!("{}/{}", wake.namespace.as_deref().unwrap_or_default(), wake.name))
            .collect();
        woken.sort();
        assert_eq!(woken, ["acme/fast", "acme/large"]);
    }
}
