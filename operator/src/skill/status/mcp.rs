//! Derives from the state of the cluster whether the MCP server is available. The operator never connects to the server.

use super::super::apply::{AppliedMcp, AppliedSkill};
use super::super::fetch::FetchedSkill;
use super::finding::{Finding, object_fault};
use super::pods;
use crate::apply::ApplyResult;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::McpService;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use k8s_openapi::api::core::v1::{Pod, Service};
use std::sync::Arc;

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::McpAvailable;

/// Describes the state of the MCP server.
pub(super) fn finding(applied: &AppliedSkill, fetched: &FetchedSkill, skill: &str) -> Finding {
    let managed_name = |kind: &str| format!("{kind} {}", names::mcp_server(skill));
    match &applied.mcp {
        AppliedMcp::Absent => {
            Finding::healthy(KIND, Reason::NoMcpServer, "the Skill has no MCP server, and needs none")
        }
        AppliedMcp::External(named) => service_finding(named, fetched.named_service.as_deref()),
        AppliedMcp::Managed { account, deployment, service } => {
            object_fault(KIND, &managed_name("ServiceAccount"), account)
                .or_else(|| object_fault(KIND, &managed_name("Deployment"), deployment))
                .or_else(|| object_fault(KIND, &managed_name("Service"), service))
                .unwrap_or_else(|| deployment_finding(deployment, fetched))
        }
    }
}

fn service_finding(named: &McpService, service: Option<&Service>) -> Finding {
    let McpService { name, port, path: _ } = named;
    let Some(service) = service else {
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
        return Finding::healthy(KIND, Reason::Available, format!("Service {name} has port {port}"));
    }
    let existing: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let existing = if existing.is_empty() { "none".to_owned() } else { existing.join(", ") };
    let message = format!(
        "Service {name} has no TCP port {port}, it has {existing}: change spec.mcpServer.service.port or the Service"
    );
    Finding::stalls(KIND, Reason::PortNotFound, message)
}

fn deployment_finding(applied: &ApplyResult<Deployment>, fetched: &FetchedSkill) -> Finding {
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
        return Finding::healthy(KIND, Reason::Available, "the MCP server accepts connections");
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let why = refused_pod(conditions)
        .or_else(|| pods::problem(newest(&fetched.mcp_pods)?))
        .or_else(|| rollout_timeout(conditions));
    why.map_or_else(progressing, |why| Finding::stalls(KIND, Reason::McpUnavailable, why))
}

/// Describes why the namespace refuses the pods, for example because of a quota or a Pod Security level.
fn refused_pod(conditions: &[DeploymentCondition]) -> Option<String> {
    let failure = conditions.iter().find(|found| found.type_ == "ReplicaFailure" && found.status == "True")?;
    let why = failure.message.as_deref().unwrap_or("no reason is given");
    Some(format!("the namespace refuses the MCP server's pod: {why}"))
}

fn rollout_timeout(conditions: &[DeploymentCondition]) -> Option<String> {
    let progressing = conditions.iter().find(|found| found.type_ == "Progressing")?;
    (progressing.reason.as_deref() == Some("ProgressDeadlineExceeded")).then(|| pods::NOT_LISTENING.to_owned())
}

/// The newest pod: an earlier one may run a configuration that was corrected since.
fn newest(pods: &[Arc<Pod>]) -> Option<&Pod> {
    pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp.clone()).map(AsRef::as_ref)
}
