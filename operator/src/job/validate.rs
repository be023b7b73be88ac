//! Whether what a pod needs is there, and what exactly it is: pure, each miss with what to do about it.

mod resources;

pub use resources::resources;

use super::applied::Wait;
use super::paths::{ca_file, key_file};
use crate::caches::Guarded;
use crate::listing::{IN_A_CONDITION, listed};
use crate::model::fallbacks;
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::fallback::chain;
use bloomery_crds::run::{self, ModelEndpoint, Revision};
use bloomery_crds::v1alpha1::{Job, JobStatus, Model, ModelSpec, RevisionRef, Skill, seconds};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ResourceExt;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What a Skill must have before the first pod of a Job of it starts, in this order. Waiting costs nothing; a pod
/// that waits for an MCP server spends the Job's time.
const BEFORE_THE_FIRST_POD: [ConditionType; 2] = [ConditionType::Accepted, ConditionType::McpAvailable];

/// The revision that a new Job of a Skill runs on.
pub fn current_revision(name: &str, skill: Option<&Guarded<Skill>>) -> Result<RevisionRef, Wait> {
    let not_ready = |message: String| Wait::new(Reason::SkillNotReady, message);
    let skill = match skill.map(|skill| &skill.0) {
        None => {
            let message = format!("the Skill {name} does not exist: make it, and the Job starts by itself");
            return Err(Wait::new(Reason::SkillNotFound, message));
        }
        Some(Err(error)) => {
            return Err(not_ready(format!(
                "the Skill {name} cannot be read by this version of the operator: {}",
                error.error
            )));
        }
        Some(Ok(skill)) => skill,
    };
    if skill.metadata.deletion_timestamp.is_some() {
        let message = format!("the Skill {name} is being deleted: make it again, and the Job starts by itself");
        return Err(Wait::new(Reason::SkillNotFound, message));
    }
    let status = skill.status.as_ref().filter(|status| status.observed_generation == skill.metadata.generation);
    let Some(status) = status else {
        return Err(not_ready(format!("the Skill {name} was changed a moment ago, and is being looked at")));
    };
    for needed in BEFORE_THE_FIRST_POD {
        if let Some(unmet) = unmet(&status.conditions, needed) {
            return Err(not_ready(format!("the Skill {name} is not ready: {unmet}")));
        }
    }
    // A claim that is not bound yet may be bound for the pod; one that is lost cannot.
    if let Some(memory) = conditions::find(&status.conditions, ConditionType::MemoryReady)
        && memory.status == "False"
    {
        return Err(not_ready(format!(
            "the memory of the Skill {name} is not ready ({}): {}",
            memory.reason, memory.message
        )));
    }
    let revision = status.revision.clone();
    revision.ok_or_else(|| not_ready(format!("the Skill {name} has no revision yet")))
}

/// Why a condition does not hold; none where it does.
fn unmet(conditions: &[Condition], kind: ConditionType) -> Option<String> {
    match conditions::find(conditions, kind) {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!("{kind}={} ({}): {}", condition.status, condition.reason, condition.message)),
        None => Some(format!("{kind} is not known yet")),
    }
}

/// The UID of the Job that another one of this Skill continues: it must have ended, and be of the same Skill, whose memory
/// holds what was said.
pub fn continued(name: &str, skill: &str, job: Option<&Guarded<Job>>) -> Result<String, Wait> {
    let wait = |message: String| Err(Wait::new(Reason::ContinuedNotEnded, message));
    let job = match job.map(|job| &job.0) {
        None => {
            return wait(format!(
                "the Job {name}, which this one continues, does not exist: make it, or make this one without `continues`"
            ));
        }
        Some(Err(error)) => {
            let error = &error.error;
            return wait(format!("the Job {name} cannot be read by this version of the operator: {error}"));
        }
        Some(Ok(job)) => job,
    };
    if job.spec.skill != skill {
        let of = &job.spec.skill;
        return wait(format!(
            "the Job {name} is one of the Skill {of}, and only Jobs of one Skill continue each other: make another Job"
        ));
    }
    match (&job.metadata.uid, job.status.as_ref().is_some_and(JobStatus::is_terminal)) {
        (Some(uid), true) => Ok(uid.clone()),
        _ => wait(format!(
            "the Job {name}, which this one continues, has not ended: this one starts by itself once it has"
        )),
    }
}

/// The compiled Skill behind its seal.
pub fn revision(expected: &RevisionRef, stored: Option<&ConfigMap>) -> Result<Revision, Wait> {
    let text = stored.and_then(|map| map.data.as_ref()?.get(run::REVISION_KEY));
    let Some(text) = text else {
        let message = format!("the revision {} (a ConfigMap) that the Job runs on does not exist", expected.name);
        return Err(Wait::new(Reason::SkillNotReady, message));
    };
    run::open_revision(text, &expected.digest).map_err(|error| {
        let message = format!(
            "the revision {} cannot be used: {error}. Delete that ConfigMap, and it is made anew of the Skill",
            expected.name
        );
        Wait::new(Reason::SkillNotReady, message)
    })
}

/// The models that a worker calls: those of the names in their order, then their fallbacks. What is wrong with any of
/// them is told at once.
pub fn models(names: &[&str], find: impl Fn(&str) -> Option<Arc<Guarded<Model>>>) -> Result<Vec<ModelEndpoint>, Wait> {
    let mut endpoints = Vec::new();
    let mut unmet: Vec<Wait> = Vec::new();
    let mut wanted: VecDeque<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut told: BTreeSet<String> = wanted.iter().cloned().collect();
    while let Some(name) = wanted.pop_front() {
        match model(&name, find(&name).as_deref()).and_then(|endpoint| with_fallbacks(endpoint, &find)) {
            Ok(endpoint) => {
                wanted.extend(endpoint.fallback.iter().filter(|name| told.insert((*name).clone())).cloned());
                endpoints.push(endpoint);
            }
            Err(wait) => unmet.push(wait),
        }
    }
    let Some(first) = unmet.first() else { return Ok(endpoints) };
    let messages: Vec<&str> = unmet.iter().map(|wait| wait.message.as_str()).collect();
    Err(Wait::new(first.reason, listed(&messages, IN_A_CONDITION)))
}

/// The Model's condition names the same faults; they may be younger than that.
fn with_fallbacks(
    endpoint: ModelEndpoint,
    find: impl Fn(&str) -> Option<Arc<Guarded<Model>>>,
) -> Result<ModelEndpoint, Wait> {
    let chain = chain(&endpoint.name, |name| find(name).map(|model| fallbacks(&model)));
    match chain {
        Ok(fallback) => Ok(ModelEndpoint { fallback, ..endpoint }),
        Err(fault) => {
            Err(Wait::new(Reason::ModelNotReady, format!("the Model {} is not ready: {fault}.", endpoint.name)))
        }
    }
}

/// The model that a worker calls, but for its fallbacks.
fn model(name: &str, model: Option<&Guarded<Model>>) -> Result<ModelEndpoint, Wait> {
    let model = match model.map(|model| &model.0) {
        None => {
            let message = format!("the Model {name} does not exist: make it, and the Job goes on by itself.");
            return Err(Wait::new(Reason::ModelNotFound, message));
        }
        Some(Err(error)) => {
            let message = format!("the Model {name} cannot be read by this version of the operator: {}", error.error);
            return Err(Wait::new(Reason::ModelNotReady, message));
        }
        Some(Ok(model)) => model,
    };
    let stands = model.status.as_ref().filter(|status| status.observed_generation == model.metadata.generation);
    let conditions = stands.map(|status| status.conditions.as_slice()).unwrap_or_default();
    if let Some(unmet) = unmet(conditions, ConditionType::Ready) {
        return Err(Wait::new(Reason::ModelNotReady, format!("the Model {name} is not ready: {unmet}")));
    }
    Ok(endpoint(model))
}

fn endpoint(model: &Model) -> ModelEndpoint {
    // Without `..`: a new field must be told here to whom it matters.
    let ModelSpec {
        provider,
        model: provider_name,
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
        model: provider_name.clone(),
        base_url: base_url.clone(),
        timeout_seconds: timeout.as_ref().map_or(ModelSpec::DEFAULT_TIMEOUT_SECONDS, seconds),
        context_window: context_window.unwrap_or(ModelSpec::DEFAULT_CONTEXT_WINDOW),
        max_output_tokens: *max_output_tokens,
        api_key: api_key.as_ref().map(|key| key_file(&key.secret_key_ref)),
        ca: ca.as_ref().and_then(ca_file),
        proxy: proxy.clone(),
        fallback: Vec::new(),
    }
}

/// Whether pods of this memory must share a node: what the claim itself allows counts, not what new ones are made of.
pub fn is_of_one_node(claim: Option<&PersistentVolumeClaim>) -> bool {
    !allows(claim, &["ReadWriteMany"])
}

/// Whether a claim may be mounted in one of these ways.
fn allows(claim: Option<&PersistentVolumeClaim>, ways: &[&str]) -> bool {
    let modes = claim.and_then(|claim| claim.spec.as_ref()?.access_modes.as_ref());
    modes.into_iter().flatten().any(|mode| ways.contains(&mode.as_str()))
}

#[cfg(test)]
mod tests;
