//! Removes the directory of a deleted Skill from the memory (`memory.reclaimPolicy: Delete`).
//!
//! A finalizer keeps the deleted Skill until its running Jobs have ended and a short pod has removed the directory. It lets go after
//! five minutes in any case, so that a deletion always ends.

mod decide;

use super::build::{ReclaimedSkill, build_reclaim_pod};
use super::fetch;
use crate::caches::Caches;
use crate::context::Context;
use crate::error::Error;
use crate::events::EventMessage;
use crate::job::is_memory_single_node;
use crate::owned;
use crate::pod_deletion;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names::{self, FINALIZER_MEMORY};
use bloomery_crds::pod;
use bloomery_crds::v1alpha1::{Job, ReclaimPolicy, Skill};
use decide::{Facts, Step, next_step};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::Patch;
use kube::core::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;
use std::time::Duration;

/// The interval for checking again whether the directory can be removed. The deletion of a namespace does not wake its Skills.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Adds the finalizer to a Skill whose directory is removed with it, or removes it from another Skill.
///
/// # Errors
/// If the API server refuses the patch, or another writer was faster.
pub async fn update_finalizer(skill: &mut Skill, context: &Context) -> Result<(), Error> {
    let is_wanted = skill.spec.reclaim_policy() == ReclaimPolicy::Delete;
    if is_wanted != has_finalizer(skill) {
        let patched = set_finalizer(skill, is_wanted, context).await?;
        skill.metadata = patched.metadata;
    }
    Ok(())
}

/// Takes the next step to remove the directory of a deleted Skill.
///
/// # Errors
/// If a request fails, except one that shows that the Skill or its namespace is gone.
pub async fn reclaim(skill: &Skill, context: &Context) -> Result<Action, Error> {
    if !has_finalizer(skill) {
        return Ok(Action::await_change());
    }
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let uid = skill.uid().unwrap_or_default();
    let caches = &context.caches;
    let claim = caches.claims.get(&namespace, names::MEMORY_CLAIM);
    let pod = caches.pods.get(&namespace, &names::reclaim_pod(&name, &uid));
    let deleted = skill.metadata.deletion_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let step = next_step(&Facts {
        skill: &name,
        policy: skill.spec.reclaim_policy(),
        is_namespace_terminating: caches.is_terminating(&namespace),
        claim: claim.as_deref(),
        unfinished: unfinished(caches, &namespace, &name),
        pod: pod.as_deref(),
        elapsed: Timestamp::now().duration_since(deleted),
    });
    match step {
        Step::Wait => {}
        Step::Recreate => delete_pod(skill, pod.as_deref(), context).await?,
        Step::Create(time_limit) => {
            if !exists(skill, context).await? {
                return Ok(Action::await_change());
            }
            let reclaimed = ReclaimedSkill { namespace: &namespace, name: &name, uid: &uid };
            let is_single_node = is_memory_single_node(claim.as_deref());
            let pod = build_reclaim_pod(reclaimed, &context.settings.worker, is_single_node, time_limit);
            if create_pod(&pod, context).await?.is_namespace_gone() {
                release(skill, None, None, context).await?;
                return Ok(Action::await_change());
            }
        }
        Step::Release(stays) => {
            release(skill, pod.as_deref(), stays, context).await?;
            return Ok(Action::await_change());
        }
    }
    Ok(Action::requeue(CHECK_INTERVAL))
}

/// The result of the creation of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodCreation {
    /// The pod exists, or may be created later.
    Done,
    /// The namespace is being deleted.
    NamespaceGone,
}

impl PodCreation {
    fn is_namespace_gone(self) -> bool {
        self == Self::NamespaceGone
    }
}

/// Returns whether the API server has the Skill. Directly after its removal, the cache shows it without its pod. Another pod would remove
/// the directory of the next Skill with this name.
async fn exists(skill: &Skill, context: &Context) -> Result<bool, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let api: Api<Skill> = Api::namespaced(context.client.clone(), &namespace);
    let stored = api.get_opt(&name).await.map_err(Error::api(format!("read Skill {namespace}/{name}")))?;
    Ok(stored.is_some_and(|stored| stored.uid() == skill.uid()))
}

/// Creates the pod. A refusal, such as by a quota, is logged: the next check tries again.
async fn create_pod(pod: &Pod, context: &Context) -> Result<PodCreation, Error> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    context.metrics.count_write("Pod", "create");
    let created = api.create(&owned::post_params(), pod).await;
    match created.map_err(Error::api(format!("create Pod {namespace}/{name}"))) {
        Ok(_) => Ok(PodCreation::Done),
        // A pod that the cache does not show yet.
        Err(error) if error.is_conflict() => Ok(PodCreation::Done),
        Err(error) if error.is_gone() => Ok(PodCreation::NamespaceGone),
        Err(error) if error.refusal().is_some() => {
            tracing::warn!(namespace, pod = name, %error, "the directory of a deleted Skill cannot be removed yet");
            Ok(PodCreation::Done)
        }
        Err(error) => Err(error),
    }
}

/// Deletes the pod. A refusal is an Event: the next check tries again, and the finalizer lets go in any case.
async fn delete_pod(skill: &Skill, pod: Option<&Pod>, context: &Context) -> Result<(), Error> {
    if let Some(pod) = pod {
        pod_deletion::delete(context, skill, &pod.metadata, None).await?;
    }
    Ok(())
}

/// Deletes the pod and removes the finalizer. The Event comes first, because the Skill is gone afterwards.
async fn release(skill: &Skill, pod: Option<&Pod>, stays: Option<String>, context: &Context) -> Result<(), Error> {
    delete_pod(skill, pod, context).await?;
    if let Some(stays) = stays {
        context.events.publish(skill, EventMessage::warning(Reason::DirectoryStays, stays)).await;
    }
    match set_finalizer(skill, false, context).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_gone() => Ok(()),
        Err(error) => Err(error),
    }
}

fn has_finalizer(skill: &Skill) -> bool {
    skill.finalizers().iter().any(|finalizer| finalizer == FINALIZER_MEMORY)
}

/// Adds or removes the finalizer. Other finalizers stay.
async fn set_finalizer(skill: &Skill, is_wanted: bool, context: &Context) -> Result<Skill, Error> {
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let mut finalizers = skill.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != FINALIZER_MEMORY);
    finalizers.extend(is_wanted.then(|| FINALIZER_MEMORY.to_owned()));
    // The version prevents that a finalizer of another writer is lost.
    let patch = json!({"metadata": {
        "uid": skill.uid(), "resourceVersion": skill.resource_version(), "finalizers": finalizers,
    }});
    context.metrics.count_write("Skill", "patch");
    let api: Api<Skill> = Api::namespaced(context.client.clone(), &namespace);
    let patched = api.patch(&name, &owned::patch_params(), &Patch::Merge(patch)).await;
    patched.map_err(Error::api(format!("patch the finalizers of Skill {namespace}/{name}")))
}

/// Describes the workers and the started Jobs of a Skill that have not ended. They may write to its directory.
fn unfinished(caches: &Caches, namespace: &str, skill: &str) -> Vec<String> {
    let has_started = |job: &Job| job.status.as_ref().is_some_and(|status| status.skill_revision.is_some());
    let jobs = caches.jobs.select(namespace, |job| {
        let job = job.0.as_ref();
        job.is_ok_and(|job| job.spec.skill == skill && has_started(job) && fetch::is_unfinished(job))
    });
    let pods = caches.pods.select(namespace, |pod| is_live_worker(pod, skill));
    let jobs = jobs.iter().map(|job| format!("the Job {}", job.name_any()));
    jobs.chain(pods.iter().map(|pod| format!("the pod {}", pod.name_any()))).collect()
}

fn is_live_worker(pod: &Pod, skill: &str) -> bool {
    let labels = pod.labels();
    labels.get(names::LABEL_SKILL).is_some_and(|of| of == skill)
        && labels.get(names::LABEL_COMPONENT).is_some_and(|component| component == "worker")
        && !pod::has_ended(pod)
}

#[cfg(test)]
mod tests;
