//! Fetches the inputs of the pod of a new attempt. The requests are sent only for a Job that starts an attempt.

use super::FetchedJob;
use crate::approval::evaluate::{ApprovalState, evaluate, needed_decisions};
use crate::approval::policy::{self, PolicyState};
use crate::approval::store;
use crate::caches::Guarded;
use crate::children::family::{depth, lineage};
use crate::children::state::{open_calls, states};
use crate::context::Context;
use crate::error::Error;
use crate::job::plan::{Act, Plan, StartOrOther};
use crate::status::revision_for;
use bloomery_crds::children::{ChildState, MAX_DEPTH};
use bloomery_crds::names;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::{Binding, Job, Model, RevisionRef, ToolPolicy};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
use k8s_openapi::jiff::Timestamp;
use kube::core::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The inputs of the pod of a new attempt, as stored.
#[derive(Debug)]
pub struct AttemptSources {
    /// The number of the attempt.
    pub attempt: u32,
    /// True if the previous attempt was disrupted.
    pub after_disruption: bool,
    /// The `ConfigMap` of the revision that the Job runs on; before its first attempt, the one of its Skill for new Jobs.
    pub revision: Option<Arc<ConfigMap>>,
    /// The Models of the namespace, by name.
    pub models: BTreeMap<String, Arc<Guarded<Model>>>,
    /// The Services of the namespace, by name.
    pub services: BTreeMap<String, Arc<Service>>,
    /// The claims that the Job binds, and the tenant's memory, by name.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// The Job that this one continues.
    pub continued: Option<Arc<Guarded<Job>>>,
    /// The decisions of people that the worker needs, or the reason why they cannot be trusted now.
    pub decisions: Result<Vec<GivenDecision>, String>,
    /// The tool policy of the tenant; none if it denies no tool.
    pub tenant_tools: Option<ToolPolicy>,
    /// The depth of the Job among parents and children.
    pub depth: u32,
    /// The states of the children whose ends the conversation lacks.
    pub children: Vec<ChildState>,
    /// The CA certificates of the report endpoint; none before the operator has a CA.
    pub report_ca: Option<String>,
}

/// Fetches the inputs of the attempt of a plan. A plan without an attempt costs no request.
pub async fn fetch(context: &Context, fetched: &FetchedJob, plan: Plan) -> Result<Plan<AttemptSources>, Error> {
    let Plan { act, delete, requeue_after } = plan;
    let act = match act.separate_start() {
        StartOrOther::Start { attempt, after } => {
            let mut sources = fetch_sources(context, fetched, attempt).await?;
            sources.after_disruption = after.as_ref().is_some_and(|lost| lost.disrupted > 0);
            Act::Start { attempt: sources, after }
        }
        StartOrOther::Other(act) => act,
    };
    Ok(Plan { act, delete, requeue_after })
}

async fn fetch_sources(context: &Context, fetched: &FetchedJob, attempt: u32) -> Result<AttemptSources, Error> {
    let FetchedJob { job, namespace, .. } = fetched;
    let models = context.caches.models.select(namespace, |_| true);
    let services = context.caches.services.select(namespace, |_| true);
    let bound = job.spec.resources.values().filter_map(claim_name);
    let claims = bound.chain([names::MEMORY_CLAIM]);
    let claims = claims.filter_map(|name| Some((name.to_owned(), context.caches.claims.get(namespace, name)?)));
    let open: Vec<&str> = open_calls(&fetched.status).collect();
    Ok(AttemptSources {
        attempt,
        after_disruption: false,
        revision: fetch_revision(context, fetched).await?,
        models: models.into_iter().map(|model| (model.name_any(), model)).collect(),
        services: services.into_iter().map(|service| (service.name_any(), service)).collect(),
        claims: claims.collect(),
        continued: job.spec.continues.as_ref().and_then(|name| context.caches.jobs.get(namespace, name)),
        decisions: fetch_decisions(context, fetched).await?,
        tenant_tools: context.tenant_limits(namespace).tools(),
        // An unknown depth is the largest one: the Job invokes no other.
        depth: lineage(&context.caches, job).map_or(MAX_DEPTH, |lineage| depth(&lineage)),
        children: states(context, job, &open).await,
        report_ca: context.report_ca_bundle.pem(),
    })
}

/// The claim that a binding names.
fn claim_name(binding: &Binding) -> Option<&str> {
    binding.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str())
}

/// Returns the revision that the Job runs on, or else the one of its Skill for new Jobs. Reads it unless it is known.
pub async fn fetch_revision(context: &Context, fetched: &FetchedJob) -> Result<Option<Arc<ConfigMap>>, Error> {
    let skill = fetched.skill.as_ref().and_then(|skill| skill.0.as_ref().ok());
    let for_new_jobs = skill.and_then(|skill| revision_for(skill, fetched.job.spec.validates()));
    let Some(RevisionRef { name, .. }) = fetched.status.skill_revision.as_ref().or(for_new_jobs) else {
        return Ok(None);
    };
    let namespace = &fetched.namespace;
    let read = context.recent_revisions.read(&context.client, &context.caches, (namespace, name)).await;
    read.map_err(Error::api(format!("read ConfigMap {namespace}/{name}")))
}

/// Reads the decisions of people that the next worker needs. Returns why it cannot, if decisions exist and the admission
/// policy that protects them is not in force.
async fn fetch_decisions(context: &Context, fetched: &FetchedJob) -> Result<Result<Vec<GivenDecision>, String>, Error> {
    let FetchedJob { namespace, name: job, uid, status, call_approvals, .. } = fetched;
    let is_decided = call_approvals
        .as_ref()
        .is_some_and(|approvals| evaluate(job, uid, approvals, Timestamp::now()) == ApprovalState::Decided);
    let cached = context.caches.approvals.find_by_key(namespace, uid);
    let of_held = call_approvals.iter().flat_map(|call| &call.approvals).filter_map(|(_, approval)| approval.as_ref());
    let approvals = of_held.chain(cached.iter().filter_map(|approval| approval.0.as_ref().ok()));
    let held = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    let mut names = needed_decisions(held, is_decided, approvals);
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    if let (false, PolicyState::Missing(why)) =
        (names.is_empty(), policy::check(context.settings.approvals.shipped_policies.as_ref(), &context.caches))
    {
        return Ok(Err(why));
    }
    let mut decisions = Vec::new();
    for name in names {
        decisions.extend(store::decision_for_worker(context, namespace, (job, uid), &name, held).await?);
    }
    Ok(Ok(store::without_needless(decisions)))
}
