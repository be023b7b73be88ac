//! Resolves the models that a worker calls.

use crate::caches::Guarded;
use crate::job::paths::{ca_file, key_file};
use crate::job::plan::Wait;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::model::fallbacks;
use crate::status::unmet_message;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::fallback;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::v1alpha1::{Model, ModelSpec, whole_seconds};
use kube::core::ResourceExt;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Resolves the models that a worker calls: the named ones in order, then their fallbacks. The wait lists every fault
/// of every model. A Job waits for the same faults that its Skill shows.
pub fn resolve_models(
    names: &[&str],
    find: impl Fn(&str) -> Option<Arc<Guarded<Model>>>,
) -> Result<Vec<ModelEndpoint>, Wait> {
    let mut endpoints = Vec::new();
    let mut unmet: Vec<Wait> = Vec::new();
    let mut wanted: VecDeque<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen: BTreeSet<String> = wanted.iter().cloned().collect();
    while let Some(name) = wanted.pop_front() {
        match resolve_model(&name, find(&name).as_deref()).and_then(|endpoint| with_fallbacks(endpoint, &find)) {
            Ok(endpoint) => {
                wanted.extend(endpoint.fallback.iter().filter(|name| seen.insert((*name).clone())).cloned());
                endpoints.push(endpoint);
            }
            Err(wait) => unmet.push(wait),
        }
    }
    let Some(first) = unmet.first() else { return Ok(endpoints) };
    let messages: Vec<&str> = unmet.iter().map(|wait| wait.message.as_str()).collect();
    Err(Wait::new(first.reason, join_sentences(&messages, MAX_LIST_BYTES)))
}

/// Resolves the fallbacks of a model. The Model controller has checked them, but they may have changed since.
fn with_fallbacks(
    endpoint: ModelEndpoint,
    find: impl Fn(&str) -> Option<Arc<Guarded<Model>>>,
) -> Result<ModelEndpoint, Wait> {
    let chain = fallback::resolve(&endpoint.name, |name| find(name).map(|model| fallbacks(&model)));
    match chain {
        Ok(fallback) => Ok(ModelEndpoint { fallback, ..endpoint }),
        Err(fault) => {
            Err(Wait::new(Reason::ModelNotReady, format!("the Model {} is not ready: {fault}.", endpoint.name)))
        }
    }
}

/// Resolves a model that a worker calls, without its fallbacks.
pub(super) fn resolve_model(name: &str, model: Option<&Guarded<Model>>) -> Result<ModelEndpoint, Wait> {
    let model = match model.map(|model| &model.0) {
        None => {
            let message =
                format!("the Model {name} does not exist: create it, and whatever waits for it continues by itself.");
            return Err(Wait::new(Reason::ModelNotFound, message));
        }
        Some(Err(error)) => {
            let message = format!("the Model {name} cannot be read by this version of the operator: {}", error.error);
            return Err(Wait::new(Reason::ModelNotReady, message));
        }
        Some(Ok(model)) => model,
    };
    let current = model.status.as_ref().filter(|status| status.observed_generation == model.metadata.generation);
    let conditions = current.map(|status| status.conditions.as_slice()).unwrap_or_default();
    if let Some(unmet) = unmet_message(conditions, ConditionType::Ready) {
        return Err(Wait::new(Reason::ModelNotReady, format!("the Model {name} is not ready: {unmet}")));
    }
    Ok(endpoint(model))
}

fn endpoint(model: &Model) -> ModelEndpoint {
    // Without `..`, so that a new field does not compile here until it is passed on or left out on purpose.
    let ModelSpec {
        provider,
        model: name_at_provider,
        base_url,
        api_key,
        context_window,
        max_output_tokens,
        timeout,
        ca,
        proxy,
        fallback: _,
    } = &model.spec;
    ModelEndpoint {
        name: model.name_any(),
        provider: *provider,
        model: name_at_provider.clone(),
        base_url: base_url.clone(),
        timeout_seconds: timeout.as_ref().map_or(ModelSpec::DEFAULT_TIMEOUT_SECONDS, whole_seconds),
        context_window: context_window.unwrap_or(ModelSpec::DEFAULT_CONTEXT_WINDOW),
        max_output_tokens: *max_output_tokens,
        api_key: api_key.as_ref().map(|key| key_file(&key.secret_key_ref)),
        ca: ca.as_ref().and_then(ca_file),
        proxy: proxy.clone(),
        fallback: Vec::new(),
    }
}
