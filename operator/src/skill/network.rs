//! Builds the network policies of a Skill: pure.

use super::build::metadata;
use super::fetch::FetchedSkill;
use super::validate::{ValidMcp, ValidSkill};
use crate::caches::Guarded;
use crate::network::destination::{self, Destination};
use crate::network::egress::{Egress, Obstacle};
use crate::network::policies;
use crate::settings::Settings;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Model, Skill};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyEgressRule};
use kube::core::{Resource, ResourceExt};
use kube::runtime::reflector::Store;

/// The maximum number of earlier addresses in the policy of the workers. Others may have edited the annotations that list them.
const MAX_EARLIER: usize = 128;

/// The network of a Skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreparedNetwork {
    /// The policies; none if the installation has none.
    pub policies: Option<SkillPolicies>,
    /// What the Skill may not connect to. Each is a sentence that begins with the path of its field.
    pub faults: Vec<String>,
}

/// The network policies that a Skill needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillPolicies {
    /// The policy that isolates all pods of the operator in the namespace.
    pub isolation: NetworkPolicy,
    /// The policy of the workers and probes.
    pub workers: NetworkPolicy,
    /// The policy of an MCP server that the operator runs.
    pub mcp: Option<NetworkPolicy>,
}

/// Builds the network of a Skill. There is no rule for what the Skill may not connect to.
///
/// The policy of the workers also allows what running workers connect to, and the Skill no longer names.
pub fn build(skill: &ValidSkill, fetched: &FetchedSkill, settings: &Settings) -> PreparedNetwork {
    let services = |name: &str| fetched.services.get(name).cloned();
    let egress = Egress::new(settings, &skill.namespace, &services);
    let mut faults = Vec::new();
    faults.extend(server_fault(skill, &egress));
    let named = destination::of_skill(&skill.spec, &fetched.models);
    let earlier = fetched.connects_to.difference(&named).take(MAX_EARLIER);
    // The Model itself shows that it may not be used, and a Service that is created later wakes the Skill.
    let rules: Vec<_> = named.iter().chain(earlier).filter_map(|destination| egress.rule(destination).ok()).collect();
    let server_rules = server_rules(skill, &egress, &mut faults);
    let policies = settings.network.policies.then(|| {
        let workers = metadata(skill, names::worker_policy(&skill.name), "worker");
        let mcp = match &skill.mcp {
            Some(ValidMcp::Container(_)) => {
                let metadata = metadata(skill, names::mcp_server(&skill.name), "mcp");
                Some(policies::of_mcp_server(metadata, &skill.name, server_rules, settings))
            }
            Some(ValidMcp::Service(_) | ValidMcp::Uri(_) | ValidMcp::Sidecar(_)) | None => None,
        };
        SkillPolicies {
            isolation: policies::isolation(&skill.namespace),
            workers: policies::of_workers(workers, &skill.name, rules, settings),
            mcp,
        }
    });
    PreparedNetwork { policies, faults }
}

/// Returns the fault of an MCP server that the operator does not run.
fn server_fault(skill: &ValidSkill, egress: &Egress<'_>) -> Option<String> {
    let server = skill.spec.mcp_server.as_ref()?;
    let field = if server.uri.is_some() { "uri" } else { "service" };
    let why = egress.refusal(&Destination::of_server(server)?)?;
    Some(format!("spec.mcpServer.{field}: {why}."))
}

/// Returns the rules for what the MCP server of a Skill connects to.
fn server_rules(skill: &ValidSkill, egress: &Egress<'_>, faults: &mut Vec<String>) -> Vec<NetworkPolicyEgressRule> {
    let listed = skill.spec.mcp_server.iter().flat_map(|server| &server.egress).enumerate();
    let mut rules = Vec::new();
    for (at, item) in listed {
        match egress.rule(&Destination::of_egress(item)) {
            Ok(rule) => rules.push(rule),
            Err(Obstacle::NotAllowed(why)) => faults.push(format!("spec.mcpServer.egress[{at}]: {why}.")),
            Err(Obstacle::NoService(_)) => {}
        }
    }
    rules
}

/// Returns whether a Skill connects to the Service with this name for its MCP server: the server itself, or a worker at `uri`.
pub fn connects_to_service(skill: &Skill, service: &str) -> bool {
    let namespace = skill.metadata.namespace.as_deref().unwrap_or_default();
    let servers = || skill.spec.mcp_server.iter();
    let listed = servers().flat_map(|server| &server.egress).map(Destination::of_egress);
    listed
        .chain(servers().filter_map(Destination::of_server))
        .any(|destination| destination.is_service(namespace, service))
}

/// Returns whether the worker of a pod connects to what its Skill no longer names. The start and the end of such a worker change the policy
/// of the Skill.
pub fn connects_to_more(pod: &Pod, skill: &Skill, models: &Store<Guarded<Model>>) -> bool {
    let connects_to = destination::of_annotation(pod);
    if connects_to.is_empty() {
        return false;
    }
    let models = models.state_filter(|model| model.meta().namespace == skill.metadata.namespace);
    let models = models.into_iter().map(|model| (model.name_any(), model)).collect();
    !connects_to.is_subset(&destination::of_skill(&skill.spec, &models))
}

/// Returns whether a worker connects to the Service with this name for a Model.
pub fn is_model_of_service(model: &Model, namespace: &str, service: &str) -> bool {
    Destination::of_model(&model.spec).is_some_and(|destination| destination.is_service(namespace, service))
}
