//! The Skill controller: provisions the objects that a Skill's Jobs need, and reports their state.

mod apply;
mod build;
mod events;
mod fetch;
mod named_skills;
mod network;
mod probe;
mod prune;
mod reclaim;
mod status;
mod test_job;
mod validate;
mod write;

use crate::caches::{Caches, Guarded, service_of};
use crate::context::Context;
use crate::controller::{Controller, Wake, named_by_label, wake_on};
use crate::error::Error;
use crate::first_seen::FirstSeen;
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Job, Model, Skill};
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use probe::ProbeState;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum number of concurrent reconciles.
const MAX_CONCURRENT_RECONCILES: u16 = 8;

/// The interval for retrying a Skill if a conflicting object has the name of one of its objects. The deletion of the
/// conflicting object may not wake the Skill, because objects without the operator's label are not watched.
const CONFLICTING_OBJECT_RETRY_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The interval for retrying a Skill while the keys of tokens are not known. Without them, an MCP server would accept no worker. They
/// are known soon after the start.
const KEYS_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Reconciles Skills until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let store = context.caches.skills.store().clone();
    let controller =
        Controller { name: "skill", store, wakes: changes(&context.caches), concurrency: MAX_CONCURRENT_RECONCILES };
    let differs_since = Arc::new(FirstSeen::default());
    let reconcile = move |skill: Skill, context: Arc<Context>| reconcile(skill, context, differs_since.clone());
    controller.run(context, reconcile, shutdown).await;
}

/// Reconciles a Skill. `differs_since` has the time at which each Skill was first seen to differ from its status.
async fn reconcile(mut skill: Skill, context: Arc<Context>, differs_since: Arc<FirstSeen>) -> Result<Action, Error> {
    // Kubernetes deletes the objects that the Skill owns. The tenant's memory stays.
    if skill.metadata.deletion_timestamp.is_some() {
        return reclaim::reclaim(&skill, &context).await;
    }
    // Before a Job can write to the directory (IO).
    reclaim::update_finalizer(&mut skill, &context).await?;
    // The keys come with those of the seals of pods, which the network needs.
    let Some(keys) = context.server_tokens.public_keys() else { return Ok(Action::requeue(KEYS_RETRY_INTERVAL)) };
    // Fetch (IO): from the caches, and the lists and scripts from the API server.
    let mut fetched = fetch::fetch(&skill, &context);
    let config_maps = fetch::fetch_config_maps(&skill, &context.client).await?;
    // Validate (pure).
    let valid = validate::validate(&skill)
        .and_then(|valid| validate::refuse_cycle(valid, fetched.named_skills.cycle.as_ref()))
        .and_then(|valid| validate::resolve_lists(valid, &config_maps));
    // Build (pure).
    let prepared = valid.and_then(|valid| build::build(&valid, &context.settings, &keys));
    // The Jobs of an invalid Skill run on, so it has a network too.
    let network =
        validate::readable(&skill).map(|skill| network::build(&skill, &fetched, &context.settings)).unwrap_or_default();
    // Apply (IO).
    let network = Box::pin(apply::apply_network(network, &fetched, &context.applier)).await?;
    prune::prune_policies(&network, &fetched, &context.applier).await?;
    let refused_policy = network.refusal();
    let applied = match prepared {
        Ok(prepared) => Ok(Box::pin(apply::apply(prepared, network, &fetched, &context.applier)).await?),
        Err(invalid) => Err(invalid),
    };
    // Probe (IO): starts and ends the pod that verifies the MCP server.
    let (probe, probe_again_after) = match &applied {
        Ok(applied) => {
            let is_available = status::is_mcp_available(applied, &fetched, &skill);
            Box::pin(probe::run(&skill, &applied.revision_ref, is_available, &fetched, &context)).await?
        }
        Err(_) => (ProbeState::Pending, None),
    };
    // Fetch (IO): the Job that tests the revision, from the cache, and its results if the Skill lacks them.
    if let Ok(applied) = &applied {
        fetched.test_job = test_job::fetch(&skill, &applied.revision_ref, &context).await?;
    }
    // Status (pure).
    let now = Timestamp::now();
    let status = status::compute(&skill, &applied, &fetched, &probe, &Time(now));
    // Write the status, publish Events and prune (IO).
    let write_after = Box::pin(write::write(&context, &differs_since, &skill, &status, now)).await?;
    let Ok(applied) = applied else { return refused_policy.map_or_else(|| Ok(requeue(write_after)), Err) };
    prune::prune(&skill, &applied, &fetched, &context.applier).await?;
    // Apply (IO): the Job that tests a new revision.
    let revision = &applied.revision_ref;
    let tested = (&status, revision, fetched.creation_of(&revision.name));
    let test_after = Box::pin(test_job::run(&skill, tested, &fetched.test_job, &context)).await?;
    let retry_after = applied.has_conflicting_object().then_some(CONFLICTING_OBJECT_RETRY_INTERVAL);
    match applied.refusal() {
        Some(refusal) => Err(refusal),
        None => Ok(requeue([probe_again_after, write_after, test_after, retry_after].into_iter().flatten().min())),
    }
}

fn requeue(after: Option<SignedDuration>) -> Action {
    after.map_or_else(Action::await_change, |after| Action::requeue(after.unsigned_abs()))
}

/// The changes that wake Skills.
fn changes(caches: &Caches) -> Vec<BoxStream<'static, Wake<Skill>>> {
    let skills = caches.skills.store();
    let store_for_claims = skills.clone();
    let store_for_services = skills.clone();
    let store_for_endpoints = skills.clone();
    let store_for_models = skills.clone();
    let store_for_key_waits = skills.clone();
    let store_for_lists = skills.clone();
    let store_for_pods = skills.clone();
    let store_for_faults = skills.clone();
    let store_for_tools = skills.clone();
    let store_for_ended_jobs = skills.clone();
    let store_for_policies = skills.clone();
    let store_for_limits = skills.clone();
    let store_for_invokers = skills.clone();
    let models = caches.models.store().clone();
    let models_of_workers = models.clone();
    let jobs = caches.jobs.store().clone();
    vec![
        wake_on(caches.skills.changes(), skills, |skill| vec![ObjectRef::from_obj(skill)]),
        wake_on(caches.skills.changes(), skills, move |skill| named_skills::invokers(&store_for_invokers, skill)),
        wake_on(caches.revisions.changes(), skills, |object| named_by_label(object, names::LABEL_SKILL)),
        wake_on(caches.config_maps.changes(), skills, move |config_map| skills_of_list(&store_for_lists, config_map)),
        wake_on(caches.service_accounts.changes(), skills, |object| named_by_label(object, names::LABEL_SKILL)),
        wake_on(caches.deployments.changes(), skills, |object| named_by_label(object, names::LABEL_SKILL)),
        wake_on(caches.budgets.changes(), skills, |object| named_by_label(object, names::LABEL_SKILL)),
        wake_on(caches.pods.changes(), skills, move |pod| skills_of_pod(&store_for_pods, &models_of_workers, pod)),
        wake_on(caches.claims.changes(), skills, move |claim| skills_of_claim(&store_for_claims, claim)),
        wake_on(caches.services.changes(), skills, move |service| {
            let name = service.name_any();
            let namespace = service.metadata.namespace.as_deref();
            let of_model = is_service_of_model(&models, namespace, &name);
            fetch::select_skills(&store_for_services, namespace, |skill| {
                of_model || fetch::uses_service(skill, &name) || network::connects_to_service(skill, &name)
            })
        }),
        wake_on(caches.network_policies.changes(), skills, move |policy| match policy.metadata.name.as_deref() {
            Some(names::ISOLATION_POLICY) => {
                fetch::select_skills(&store_for_policies, policy.metadata.namespace.as_deref(), |_| true)
            }
            // The policy of a Job changes nothing of its Skill.
            _ if policy.labels().contains_key(names::LABEL_JOB) => Vec::new(),
            _ => named_by_label(policy, names::LABEL_SKILL),
        }),
        wake_on(caches.endpoint_slices.changes(), skills, move |slice| {
            let Some(service) = service_of(slice) else { return Vec::new() };
            let namespace = slice.metadata.namespace.as_deref();
            fetch::select_skills(&store_for_endpoints, namespace, |skill| fetch::uses_service(skill, service))
        }),
        // A Skill depends on the fallbacks of its Models too, so a Model wakes all Skills of its namespace.
        wake_on(caches.models.changes(), skills, move |model| {
            fetch::select_skills(&store_for_models, model.meta().namespace.as_deref(), |_| true)
        }),
        wake_on(caches.namespaces.changes(), skills, move |namespace| {
            fetch::select_skills(&store_for_limits, namespace.metadata.name.as_deref(), |_| true)
        }),
        wake_on(caches.jobs.changes(), skills, move |job| skills_of_key_wait(&store_for_key_waits, job)),
        wake_on(caches.jobs.changes(), skills, move |job| skill_of_memory_fault(&store_for_faults, job)),
        wake_on(caches.jobs.changes(), skills, move |job| skill_of_changed_tools(&store_for_tools, job)),
        // A Job that has ended or was deleted no longer needs its revision, so the Skill may delete the revision.
        wake_on(caches.jobs.changes(), skills, move |job| skill_of_ended_job(&store_for_ended_jobs, &jobs, job)),
    ]
}

/// Returns whether a Model of a namespace is behind the Service with this name. Network policies are built from the Service.
fn is_service_of_model(models: &Store<Guarded<Model>>, namespace: Option<&str>, service: &str) -> bool {
    let is_behind = |model: &Guarded<Model>| {
        let is_called = |model: &Model| network::is_model_of_service(model, namespace.unwrap_or_default(), service);
        model.meta().namespace.as_deref() == namespace && model.0.as_ref().is_ok_and(is_called)
    };
    !models.state_filter(is_behind).is_empty()
}

/// Returns the Skills with lists or scripts from a ConfigMap.
fn skills_of_list(skills: &Store<Guarded<Skill>>, config_map: &PartialObjectMeta<ConfigMap>) -> Vec<Wake<Skill>> {
    let name = config_map.name_any();
    let namespace = config_map.metadata.namespace.as_deref();
    fetch::select_skills(skills, namespace, |skill| fetch::uses_config_map(skill, &name))
}

/// Returns the Skills whose state depends on a pod. Other worker pods do not change the state of a Skill.
fn skills_of_pod(skills: &Store<Guarded<Skill>>, models: &Store<Guarded<Model>>, pod: &Pod) -> Vec<Wake<Skill>> {
    let of_label = || named_by_label(pod, names::LABEL_SKILL);
    match pod.labels().get(names::LABEL_COMPONENT).map(String::as_str) {
        Some("mcp" | names::COMPONENT_PROBE | build::RECLAIM) => of_label(),
        Some("worker") if fetch::has_unbound_claim(pod) => of_label(),
        // The directory of a deleted Skill is removed once its workers have ended. The network keeps their addresses until then.
        Some("worker") => {
            let may_change = |skill: &Skill| {
                skill.metadata.deletion_timestamp.is_some() || network::connects_to_more(pod, skill, models)
            };
            of_label().into_iter().filter(|skill| is_readable_and(skills, skill, may_change)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the Skill of a Job, if the Job's worker cannot write to the memory and the Skill does not say so yet, or the other way round.
fn skill_of_memory_fault(skills: &Store<Guarded<Skill>>, job: &Guarded<Job>) -> Vec<Wake<Skill>> {
    let Ok(readable) = &job.0 else { return Vec::new() };
    let is_faulty = readable.status.as_ref().is_some_and(|status| fetch::memory_fault(status).is_some());
    let shows_fault = |skill: &Skill| {
        let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        reason_of(conditions, ConditionType::MemoryReady) == Some(Reason::NotWritable)
    };
    let differs = |skill: &Skill| shows_fault(skill) != is_faulty;
    skill_of_job(readable).filter(|skill| is_readable_and(skills, skill, differs)).into_iter().collect()
}

/// Returns the Skills of a namespace if a claim is that of its memory.
fn skills_of_claim(skills: &Store<Guarded<Skill>>, claim: &PersistentVolumeClaim) -> Vec<Wake<Skill>> {
    let is_memory = claim.metadata.name.as_deref() == Some(names::MEMORY_CLAIM);
    if is_memory { fetch::select_skills(skills, claim.metadata.namespace.as_deref(), |_| true) } else { Vec::new() }
}

/// Returns the Skills that a Job's wait for a key of a Secret may change: all Skills of the namespace that do not show a missing
/// key yet and the Job's own, or, if the Job does not wait, those that show one.
fn skills_of_key_wait(skills: &Store<Guarded<Skill>>, job: &Guarded<Job>) -> Vec<Wake<Skill>> {
    let Ok(readable) = &job.0 else { return Vec::new() };
    let waits = readable.status.as_ref().is_some_and(|status| fetch::key_wait(status).is_some());
    let shows_missing_key = |skill: &Skill| {
        let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        reason_of(conditions, ConditionType::ModelsReady) == Some(Reason::SecretMissing)
    };
    fetch::select_skills(skills, job.meta().namespace.as_deref(), |skill| {
        shows_missing_key(skill) != waits || (waits && skill.name_any() == readable.spec.skill)
    })
}

/// Returns the Skill of a Job that found other tools than those that are pinned, and than the latest probe did: another probe verifies
/// the server.
fn skill_of_changed_tools(skills: &Store<Guarded<Skill>>, job: &Guarded<Job>) -> Vec<Wake<Skill>> {
    let Ok(readable) = &job.0 else { return Vec::new() };
    let Some(changed) = fetch::tools_changed(readable) else { return Vec::new() };
    let is_unverified = |skill: &Skill| {
        let tools = skill.status.as_ref().and_then(|status| status.tools.as_ref());
        tools.is_some_and(|tools| probe::is_outdated(tools, &changed))
    };
    skill_of_job(readable).filter(|skill| is_readable_and(skills, skill, is_unverified)).into_iter().collect()
}

fn skill_of_job(job: &Job) -> Option<Wake<Skill>> {
    Some(ObjectRef::new(&job.spec.skill).within(job.metadata.namespace.as_deref()?))
}

fn is_readable_and(skills: &Store<Guarded<Skill>>, skill: &Wake<Skill>, accept: impl FnOnce(&Skill) -> bool) -> bool {
    skills.get(skill).is_some_and(|skill| skill.0.as_ref().is_ok_and(accept))
}

/// Returns the Skill of a Job that ended, is being deleted, or was deleted, if that may change the Skill: the Job ran on an earlier revision,
/// which the Skill may delete now, or tests the current one, or the Skill is being deleted.
///
/// A Job without finalizers is deleted without a deletion timestamp, so the cache is checked. A new Job may have the same
/// name, so the UID is compared.
fn skill_of_ended_job(
    skills: &Store<Guarded<Skill>>,
    jobs: &Store<Guarded<Job>>,
    job: &Guarded<Job>,
) -> Vec<Wake<Skill>> {
    let Ok(readable) = &job.0 else { return Vec::new() };
    let is_cached = jobs.get(&ObjectRef::from_obj(job)).is_some_and(|cached| cached.uid() == job.uid());
    if is_cached && fetch::is_unfinished(readable) && readable.metadata.deletion_timestamp.is_none() {
        return Vec::new();
    }
    let of_job = readable.status.as_ref().and_then(|status| status.skill_revision.as_ref());
    let may_change = |skill: &Skill| {
        let current = skill.status.as_ref().and_then(|status| status.revision.as_ref());
        skill.metadata.deletion_timestamp.is_some()
            || (of_job.is_some() && of_job != current)
            || test_job::is_of_current(skill, &readable.name_any())
    };
    skill_of_job(readable).filter(|skill| is_readable_and(skills, skill, may_change)).into_iter().collect()
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
