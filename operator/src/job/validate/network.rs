//! Resolves the destinations of an attempt's worker, and builds the network policy of its Job.

use crate::caches::Guarded;
use crate::job::plan::Wait;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::network::destination::{self, Destination, bound_apis};
use crate::network::egress::{Egress, Obstacle};
use crate::network::policies;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::run::{BoundResource, JobIdentity, ModelEndpoint};
use bloomery_crds::v1alpha1::{Model, Skill, SkillSpec};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The interval for checking a missing Service of a binding again: its creation does not wake the Job.
const SERVICE_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Checks that the Job may connect to the APIs that it binds.
///
/// # Errors
/// If it may not connect to one of them, or if the Service of one cannot be used yet. The wait names every such binding.
pub(super) fn check_bound_apis(bound: &[BoundResource], egress: &Egress<'_>) -> Result<(), Wait> {
    let (mut refused, mut missing) = (Vec::new(), Vec::new());
    for (name, url) in bound_apis(bound) {
        let Some(destination) = Destination::of_url(url) else { continue };
        match egress.rule(&destination) {
            Ok(_) => {}
            Err(Obstacle::NotAllowed(why)) => refused.push(format!("spec.resources.{name}: {why}.")),
            Err(Obstacle::NoService(_)) if !egress.has_policies() => {}
            Err(Obstacle::NoService(why)) => {
                missing.push(format!("spec.resources.{name}: {why}: create it, and the Job continues by itself."));
            }
        }
    }
    if !refused.is_empty() {
        return Err(Wait::new(Reason::EgressNotAllowed, join_sentences(&refused, MAX_LIST_BYTES)));
    }
    if !missing.is_empty() {
        let wait = Wait::new(Reason::ResourceNotFound, join_sentences(&missing, MAX_LIST_BYTES));
        return Err(wait.retry_after(SERVICE_RETRY_INTERVAL));
    }
    Ok(())
}

/// What an attempt connects to.
pub(super) struct Connections<'a> {
    /// The Skill in its revision.
    pub compiled: &'a SkillSpec,
    /// The models that the worker calls.
    pub models: &'a [ModelEndpoint],
    /// The resources that the Job binds.
    pub bound: &'a [BoundResource],
}

/// Separates what an attempt connects to: what the policy of its Skill allows, and what the Job needs a policy of its own for. That is
/// what the Job binds, and the Models and the server that its revision names and the Skill no longer does.
pub(super) fn separate(
    skill: Option<&Guarded<Skill>>,
    connections: &Connections<'_>,
    models: &BTreeMap<String, Arc<Guarded<Model>>>,
) -> (BTreeSet<Destination>, BTreeSet<Destination>) {
    let Connections { compiled, models: called, bound } = connections;
    let of_skill = skill
        .and_then(|skill| skill.0.as_ref().ok())
        .map(|skill| destination::of_skill(&skill.spec, models))
        .unwrap_or_default();
    let of_attempt = destination::of_attempt(compiled.mcp_server.as_ref(), called, bound);
    of_attempt.into_iter().partition(|destination| of_skill.contains(destination))
}

/// Builds the network policy of a Job that allows these destinations; none if there is no rule for any of them.
pub(super) fn job_policy(
    (job, owner): (&JobIdentity, &OwnerReference),
    skill_name: &str,
    destinations: &BTreeSet<Destination>,
    egress: &Egress<'_>,
) -> Option<NetworkPolicy> {
    let rules: Vec<_> = destinations.iter().filter_map(|destination| egress.rule(destination).ok()).collect();
    if rules.is_empty() || !egress.has_policies() {
        return None;
    }
    let mut labels = owned::labels("worker");
    labels.extend([
        (names::LABEL_SKILL.to_owned(), skill_name.to_owned()),
        (names::LABEL_JOB.to_owned(), job.name.clone()),
    ]);
    let metadata = ObjectMeta {
        namespace: Some(job.namespace.clone()),
        name: Some(names::job_policy(&job.name, &job.uid)),
        labels: Some(labels),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    };
    Some(policies::of_job(metadata, &job.name, rules))
}
