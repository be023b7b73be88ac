//! Fetches the cached state of all objects that a Skill needs.

use super::named_skills::{self, NamedSkills};
use super::test_job::TestJob;
use crate::caches::{Caches, Guarded};
use crate::context::Context;
use crate::controller::Wake;
use crate::error::Error;
use crate::network::destination::{self, Destination};
use crate::status::{requires_validation, with_reason};
use crate::tenant::TenantLimits;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::lists::{self, ConfigMaps};
use bloomery_crds::v1alpha1::{Job, JobStatus, Model, SecretKeyRef, Skill};
use bloomery_crds::{names, pod};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The text by which the scheduler says that a claim which does not wait for its first pod is not bound.
const UNBOUND_CLAIM: &str = "unbound immediate PersistentVolumeClaims";

/// The cached state of all objects that a Skill needs.
#[derive(Debug, Default)]
pub struct FetchedSkill {
    /// The memory claim of the tenant.
    pub memory_claim: Option<Arc<PersistentVolumeClaim>>,
    /// The account that workers run as.
    pub worker_account: Option<Arc<ServiceAccount>>,
    /// The account that the MCP server runs as.
    pub mcp_account: Option<Arc<ServiceAccount>>,
    /// The Deployment that runs the MCP server.
    pub mcp_deployment: Option<Arc<Deployment>>,
    /// The Service of an MCP server that the operator runs.
    pub mcp_service: Option<Arc<Service>>,
    /// The budget of an MCP server that the operator runs.
    pub mcp_budget: Option<Arc<PodDisruptionBudget>>,
    /// The network policies of the Skill and of its Jobs, and the one that isolates all pods of the operator in the namespace, by name.
    pub network_policies: BTreeMap<String, Arc<NetworkPolicy>>,
    /// The Services of the namespace, by name.
    pub services: BTreeMap<String, Arc<Service>>,
    /// The pods of an MCP server that the operator runs.
    pub mcp_pods: Vec<Arc<Pod>>,
    /// The pods of the Skill's probes.
    pub probe_pods: Vec<Arc<Pod>>,
    /// The destinations of running workers that connect to more than the current spec names: the policy of the Skill allowed these
    /// destinations when their attempts began.
    pub connects_to: BTreeSet<Destination>,
    /// The latest time at which a Job of the Skill found that the tools of the server have changed.
    pub tools_changed_at: Option<Time>,
    /// True if the Service of the MCP server has a ready endpoint.
    pub has_endpoint: bool,
    /// The existing Service that the Skill names as its MCP server, if any.
    pub named_service: Option<Arc<Service>>,
    /// The Models of the namespace, by name.
    pub models: BTreeMap<String, Arc<Guarded<Model>>>,
    /// The keys of Secrets that workers of the namespace wait for. A Skill whose Models name such a key is not ready, even if the
    /// waiting Job is of another Skill.
    pub key_waits: Vec<SecretKeyRef>,
    /// The reason why the worker of an unfinished Job of the Skill could not write to the memory.
    pub memory_fault: Option<String>,
    /// A worker pod of the namespace that is not scheduled, because a claim is not bound.
    pub unbound_pod: Option<String>,
    /// The limits of the namespace.
    pub limits: TenantLimits,
    /// The faults of the Skills that the Skill names.
    pub named_skills: NamedSkills,
    /// All revisions of the Skill.
    pub revisions: Vec<Arc<PartialObjectMeta<ConfigMap>>>,
    /// The names of revisions that unfinished Jobs run on, or may run on, and of the one that new Jobs run on if they need a validated one.
    pub revisions_in_use: BTreeSet<String>,
    /// The Job that tests the current revision.
    pub test_job: TestJob,
}

impl FetchedSkill {
    /// Returns whether unfinished Jobs run on an earlier revision than this one: they may still call its MCP server. The end of such a Job
    /// wakes the Skill.
    pub fn is_earlier_revision_in_use(&self, current: &str) -> bool {
        self.revisions_in_use.iter().any(|name| name != current)
    }

    /// Returns the time at which a revision was created; none if the cache does not show it.
    pub fn creation_of(&self, revision: &str) -> Option<&Time> {
        let known = self.revisions.iter().find(|known| known.metadata.name.as_deref() == Some(revision));
        known?.metadata.creation_timestamp.as_ref()
    }
}

/// Reads the caches.
pub fn fetch(skill: &Skill, context: &Context) -> FetchedSkill {
    let caches = &context.caches;
    let namespace = &skill.namespace().unwrap_or_default();
    let name = &skill.name_any();
    let mcp_name = &names::mcp_server(name);
    let has_skill_label = |labels: &BTreeMap<String, String>| labels.get(names::LABEL_SKILL) == Some(name);
    let is_of_skill = |pod: &Pod, component: &str| {
        has_skill_label(pod.labels()) && pod.labels().get(names::LABEL_COMPONENT).is_some_and(|what| what == component)
    };
    let is_running_worker = |pod: &Pod| is_of_skill(pod, "worker") && !pod::has_ended(pod);
    let is_read = |pod: &Pod| {
        let is_own = is_of_skill(pod, "mcp") || is_of_skill(pod, names::COMPONENT_PROBE) || is_running_worker(pod);
        is_own || has_unbound_claim(pod)
    };
    let pods = caches.pods.select(namespace, is_read);
    let pods_of = |component| pods.iter().filter(|pod| is_of_skill(pod, component)).cloned().collect();
    let service = skill.spec.mcp_server.as_ref().and_then(|server| server.service.as_ref());
    let unfinished = caches.jobs.select(namespace, |job| job.0.as_ref().is_ok_and(is_unfinished));
    let unfinished: Vec<&Job> = unfinished.iter().filter_map(|job| job.0.as_ref().ok()).collect();
    let of_skill = unfinished.iter().filter(|job| &job.spec.skill == name).filter_map(|job| job.status.as_ref());
    let memory_fault = of_skill.clone().find_map(memory_fault).map(str::to_owned);
    let in_use = of_skill.filter_map(|status| Some(status.skill_revision.as_ref()?.name.clone()));
    let key_waits = unfinished.iter().filter_map(|job| key_wait(job.status.as_ref()?));
    let models = models_of(caches, namespace);
    let named = destination::of_skill(&skill.spec, &models);
    // The seal of a worker matters only if the worker connects to more.
    let earlier = pods.iter().filter(|pod| is_running_worker(pod)).filter_map(|pod| {
        let connects_to = destination::of_annotation(pod);
        (!connects_to.is_subset(&named) && context.pod_seals.verify(pod)).then_some(connects_to)
    });
    let revisions = caches.revisions.select(namespace, |revision| has_skill_label(revision.labels()));
    // A Job that a newer version wrote and this one cannot read may run on any revision.
    let has_unreadable_job = !caches.jobs.select(namespace, |job| job.0.is_err()).is_empty();
    let may_be_in_use = revisions.iter().filter(|_| has_unreadable_job).map(|revision| revision.name_any());
    let policies = caches.network_policies.select(namespace, |policy| {
        has_skill_label(policy.labels()) || policy.metadata.name.as_deref() == Some(names::ISOLATION_POLICY)
    });
    let services = caches.services.select(namespace, |_| true);
    FetchedSkill {
        network_policies: policies.into_iter().map(|policy| (policy.name_any(), policy)).collect(),
        services: services.into_iter().map(|service| (service.name_any(), service)).collect(),
        memory_claim: caches.claims.get(namespace, names::MEMORY_CLAIM),
        worker_account: caches.service_accounts.get(namespace, &names::worker_service_account(name)),
        mcp_account: caches.service_accounts.get(namespace, mcp_name),
        mcp_deployment: caches.deployments.get(namespace, mcp_name),
        mcp_service: caches.services.get(namespace, mcp_name),
        mcp_budget: caches.budgets.get(namespace, mcp_name),
        mcp_pods: pods_of("mcp"),
        probe_pods: pods_of(names::COMPONENT_PROBE),
        connects_to: earlier.flatten().collect(),
        tools_changed_at: tools_changed_at(skill, caches),
        has_endpoint: caches.has_endpoint(namespace, service.map_or(mcp_name, |service| &service.name)),
        named_service: service.and_then(|service| caches.services.get(namespace, &service.name)),
        models,
        key_waits: key_waits.cloned().collect(),
        memory_fault,
        unbound_pod: pods.iter().find(|pod| has_unbound_claim(pod)).map(|pod| pod.name_any()),
        limits: context.tenant_limits(namespace),
        named_skills: named_skills::fetch(skill, &caches.skills),
        revisions_in_use: in_use.chain(may_be_in_use).chain(validated_revision(skill)).collect(),
        revisions,
        test_job: TestJob::Absent,
    }
}

/// Returns the Models of a namespace by name.
fn models_of(caches: &Caches, namespace: &str) -> BTreeMap<String, Arc<Guarded<Model>>> {
    caches.models.select(namespace, |_| true).into_iter().map(|model| (model.name_any(), model)).collect()
}

/// Returns the name of the revision that new Jobs run on until a later one is validated; none if the Skill does not require this.
fn validated_revision(skill: &Skill) -> Option<String> {
    let validated = skill.status.as_ref()?.validated_revision.as_ref()?;
    requires_validation(skill).then(|| validated.name.clone())
}

/// Reads the ConfigMaps that a Skill names for lists and scripts. Those that do not exist are not in the result.
///
/// The data of ConfigMaps is not cached, because only few of them hold such texts. So a Skill with such texts costs one request for each
/// ConfigMap that it names.
///
/// # Errors
/// If a ConfigMap cannot be read.
pub async fn fetch_config_maps(skill: &Skill, client: &Client) -> Result<ConfigMaps, Error> {
    let namespace = skill.namespace().unwrap_or_default();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let names: BTreeSet<&str> = lists::config_maps(&skill.spec).collect();
    let mut found = ConfigMaps::new();
    for name in names {
        let read = api.get_opt(name).await.map_err(Error::api(format!("read ConfigMap {namespace}/{name}")))?;
        found.extend(read.map(|config_map| (name.to_owned(), config_map.data.unwrap_or_default())));
    }
    Ok(found)
}

/// Returns the latest time at which a Job of a Skill found that the tools of the server have changed.
fn tools_changed_at(skill: &Skill, caches: &Caches) -> Option<Time> {
    skill.spec.mcp_server.as_ref()?;
    let (namespace, name) = (skill.namespace()?, skill.name_any());
    let jobs = caches.jobs.select(&namespace, |job| job.0.as_ref().is_ok_and(|job| job.spec.skill == name));
    jobs.iter().filter_map(|job| tools_changed(job.0.as_ref().ok()?)).max_by_key(|at| at.0)
}

/// Returns the time at which a Job found that the tools of its server have changed.
pub fn tools_changed(job: &Job) -> Option<Time> {
    let conditions = &job.status.as_ref()?.conditions;
    let found = with_reason(conditions, ConditionType::SkillAsWritten, Reason::ToolsChanged)?;
    Some(found.last_transition_time.clone())
}

/// Returns whether lists or scripts of a Skill come from the ConfigMap with this name.
pub fn uses_config_map(skill: &Skill, name: &str) -> bool {
    lists::config_maps(&skill.spec).any(|named| named == name)
}

/// Returns the key of a Secret that the worker of a Job waits for.
pub fn key_wait(status: &JobStatus) -> Option<&SecretKeyRef> {
    status.attempt.as_ref()?.waiting_for_key.as_ref()
}

/// Returns the reason why the worker of a Job could not write to the memory.
pub fn memory_fault(status: &JobStatus) -> Option<&str> {
    status.attempt.as_ref()?.memory_fault.as_deref()
}

/// Returns whether a worker pod is not scheduled, because one of its claims is not bound and does not wait for a pod.
pub fn has_unbound_claim(pod: &Pod) -> bool {
    let is_worker = pod.labels().get(names::LABEL_COMPONENT).is_some_and(|component| component == "worker");
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut scheduling =
        conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    is_worker && scheduling.any(|found| found.message.as_ref().is_some_and(|why| why.contains(UNBOUND_CLAIM)))
}

/// Returns whether a Job may still need its revision.
pub fn is_unfinished(job: &Job) -> bool {
    job.status.as_ref().and_then(|status| status.phase).is_none_or(|phase| !phase.is_terminal())
}

/// Returns whether a Skill uses the Service with this name: the Skill names the Service, or the operator creates the
/// Service for the Skill's MCP server.
pub fn uses_service(skill: &Skill, service: &str) -> bool {
    let server = skill.spec.mcp_server.as_ref();
    let is_named = server.and_then(|server| server.service.as_ref()).is_some_and(|named| named.name == service);
    is_named || names::mcp_server(&skill.name_any()) == service
}

/// The Skills of a namespace that match a predicate.
pub fn select_skills(
    store: &Store<Guarded<Skill>>,
    namespace: Option<&str>,
    predicate: impl Fn(&Skill) -> bool,
) -> Vec<Wake<Skill>> {
    let selected = store
        .state_filter(|skill| skill.meta().namespace.as_deref() == namespace && skill.0.as_ref().is_ok_and(&predicate));
    selected.iter().map(|skill| ObjectRef::from_obj(skill.as_ref())).collect()
}
