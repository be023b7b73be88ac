//! Derives from the state of the cluster whether the MCP server is available. The operator never connects to the server.

use super::super::apply::{AppliedMcp, AppliedSkill};
use super::super::fetch::FetchedSkill;
use super::finding::{Finding, object_fault};
use super::pods::{self, Port};
use crate::apply::ApplyResult;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::core_tools::{self, Unmatched};
use bloomery_crds::names;
use bloomery_crds::nearest::suggestion;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{McpService, Skill};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt;
use std::sync::Arc;

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::McpAvailable;

/// Describes the state of the MCP server.
pub(super) fn finding(applied: &AppliedSkill, fetched: &FetchedSkill, skill: &Skill) -> Finding {
    let name = names::mcp_server(&skill.name_any());
    let managed_name = |kind: &str| format!("{kind} {name}");
    match &applied.mcp {
        AppliedMcp::Absent => Finding::healthy(KIND, Reason::NoMcpServer, without_server(skill)),
        AppliedMcp::External(named) => service_finding(named, fetched),
        AppliedMcp::Outside => Finding::healthy(
            KIND,
            Reason::Available,
            "the MCP server is outside of the cluster: the probe and each worker check its address and connect to it",
        ),
        AppliedMcp::Sidecar => {
            Finding::healthy(KIND, Reason::Available, "each Job starts an MCP server of its own, in its pod")
        }
        AppliedMcp::Managed { account, deployment, service, budget } => {
            object_fault(KIND, &managed_name("ServiceAccount"), account)
                .or_else(|| object_fault(KIND, &managed_name("Deployment"), deployment))
                .or_else(|| object_fault(KIND, &managed_name("Service"), service))
                .or_else(|| object_fault(KIND, &managed_name("PodDisruptionBudget"), budget))
                .unwrap_or_else(|| deployment_finding(deployment, fetched, &name, port(skill)))
        }
    }
}

/// Describes a Skill without an MCP server.
fn without_server(skill: &Skill) -> String {
    let mut names: Vec<String> = Vec::new();
    for Unmatched { named, near } in core_tools::unmatched(&skill.spec) {
        let name = format!("{}{}", named.name, suggestion(near.as_deref()));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return "the Skill has no MCP server, and needs none".to_owned();
    }
    let message = format!(
        "the Skill has no MCP server, and its Jobs run without these tools that it names: {}",
        names.join(", ")
    );
    bounded(&message, MAX_LIST_BYTES)
}

/// Describes where another writer sets the objects of the MCP server back; none if they are as the operator wrote them.
pub(super) fn reverted(applied: &AppliedSkill, skill: &str) -> Option<Observation> {
    let AppliedMcp::Managed { account: _, deployment, service, budget: _ } = &applied.mcp else { return None };
    let mut faults = Vec::new();
    if let ApplyResult::Reverted(paths) = deployment.as_ref() {
        faults.push(format!("the Deployment {} differs at {}.", names::mcp_server(skill), paths.join(", ")));
    }
    if let ApplyResult::Reverted(paths) = service.as_ref() {
        faults.push(format!("the Service {} differs at {}.", names::mcp_server(skill), paths.join(", ")));
    }
    if faults.is_empty() {
        return None;
    }
    faults.push(
        "Another writer, such as an admission webhook, sets this back each time: exempt these objects from it."
            .to_owned(),
    );
    let message = join_sentences(&faults, MAX_LIST_BYTES);
    Some(Observation::fails(ConditionType::McpAsWritten, Reason::Reverted, message))
}

fn service_finding(named: &McpService, fetched: &FetchedSkill) -> Finding {
    let McpService { name, port, path: _ } = named;
    let Some(service) = &fetched.named_service else {
        let message = format!("the Service {name} does not exist in this namespace; it is used as soon as it exists");
        return Finding::waits(KIND, Reason::ServiceNotFound, message);
    };
    let spec = service.spec.as_ref();
    if spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName") {
        let message = format!(
            "Service {name} is of type ExternalName, which leads out of the namespace: name one with pods behind it"
        );
        return Finding::stalls(KIND, Reason::Invalid, message);
    }
    let ports = spec.and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
    let tcp = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP").map(|port| port.port);
    let ports: Vec<i32> = tcp.collect();
    if ports.contains(&i32::from(*port)) {
        let healthy = Finding::healthy(KIND, Reason::Available, format!("Service {name} has port {port}"));
        return no_endpoint(name, fetched).unwrap_or(healthy);
    }
    let existing: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let existing = if existing.is_empty() { "none".to_owned() } else { existing.join(", ") };
    let message = format!(
        "Service {name} has no TCP port {port}, it has {existing}: change spec.mcpServer.service.port or the Service"
    );
    Finding::stalls(KIND, Reason::PortNotFound, message)
}

/// Describes a Service without a ready endpoint; none if it has one. It gets one by itself when a pod is ready.
fn no_endpoint(service: &str, fetched: &FetchedSkill) -> Option<Finding> {
    let message = format!(
        "the Service {service} has no ready endpoint: compare its selector with the labels of its pods, and see why none is ready"
    );
    (!fetched.has_endpoint).then(|| Finding::waits(KIND, Reason::NoEndpoints, message))
}

fn deployment_finding(applied: &ApplyResult<Deployment>, fetched: &FetchedSkill, service: &str, port: Port) -> Finding {
    let latest = match applied {
        ApplyResult::Written(deployment) => Some(deployment.as_ref()),
        // The cached Deployment is older than the last write.
        ApplyResult::CacheBehind => None,
        _ => fetched.mcp_deployment.as_deref(),
    };
    let progressing = || Finding::waits(KIND, Reason::Progressing, "the MCP server is starting");
    let Some(deployment) = latest else { return progressing() };
    let Some(status) = deployment.status.as_ref() else { return progressing() };
    if status.observed_generation < deployment.metadata.generation {
        return progressing();
    }
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let [all, updated, available] =
        [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
    // If all pods are updated, no pod of the previous rollout is left.
    if all == updated && updated >= wanted && available >= wanted {
        let healthy = Finding::healthy(KIND, Reason::Available, "the MCP server accepts connections");
        return no_endpoint(service, fetched).unwrap_or(healthy);
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let pod = newest(&fetched.mcp_pods);
    let why = refused_pod(conditions)
        .or_else(|| pods::problem(pod?, port))
        .or_else(|| is_overdue(conditions).then(|| pods::rollout_timeout(pod, port)));
    if let Some(why) = why {
        return Finding::stalls(KIND, Reason::McpUnavailable, why);
    }
    match pod.and_then(|pod| pods::starting(pod, port)) {
        Some(starting) => Finding::waits(KIND, Reason::Progressing, starting),
        None => progressing(),
    }
}

/// Describes why the namespace refuses the pods, for example because of a quota or a Pod Security level.
fn refused_pod(conditions: &[DeploymentCondition]) -> Option<String> {
    let failure = conditions.iter().find(|found| found.type_ == "ReplicaFailure" && found.status == "True")?;
    let why = failure.message.as_deref().unwrap_or("no reason is given");
    Some(format!("the namespace refuses the MCP server's pod: {why}"))
}

/// Returns whether the rollout made no progress in time.
fn is_overdue(conditions: &[DeploymentCondition]) -> bool {
    let progressing = conditions.iter().find(|found| found.type_ == "Progressing");
    progressing.is_some_and(|found| found.reason.as_deref() == Some("ProgressDeadlineExceeded"))
}

/// The port of the MCP server that the operator runs for a Skill.
fn port(skill: &Skill) -> Port {
    let container = skill.spec.mcp_server.as_ref().and_then(|server| server.container.as_ref());
    match container {
        Some(container) if container.is_stdio() => Port::Bridge,
        container => Port::Server(container.map(|container| container.port).unwrap_or_default()),
    }
}

/// The newest pod: an earlier one may run a configuration that was corrected since.
fn newest(pods: &[Arc<Pod>]) -> Option<&Pod> {
    pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp.clone()).map(AsRef::as_ref)
}
