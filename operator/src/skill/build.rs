//! Builds the objects that a Skill needs, one in each file.

mod bridge;
mod mcp_account;
mod mcp_budget;
mod mcp_deployment;
mod mcp_resources;
mod mcp_service;
mod memory_claim;
mod metadata;
mod pod_settings;
mod reclaim_pod;
mod revision;
mod worker_account;

pub use mcp_deployment::{PORT_NAME, STARTUP_SECONDS};
pub use metadata::metadata;
pub use reclaim_pod::{COMPONENT as RECLAIM, ReclaimedSkill, build_reclaim_pod};

use super::validate::{InvalidSkill, ValidMcp, ValidSkill};
use crate::settings::Settings;
use bloomery_crds::v1alpha1::{McpService, RevisionRef};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

/// The wanted objects of a Skill.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedSkill {
    /// The memory of the tenant.
    pub memory_claim: PersistentVolumeClaim,
    /// The compiled Skill.
    pub revision: ConfigMap,
    /// The reference by which Jobs name the revision.
    pub revision_ref: RevisionRef,
    /// The account that workers run as.
    pub worker_account: ServiceAccount,
    /// The MCP server.
    pub mcp: PreparedMcp,
}

/// The MCP server of a Skill.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedMcp {
    /// The Skill has no MCP server.
    Absent,
    /// The MCP server is a Service that the operator does not run.
    External(McpService),
    /// The MCP server is outside of the cluster.
    Outside,
    /// The operator runs the MCP server.
    Managed(Box<ManagedMcp>),
}

/// The objects that run an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedMcp {
    /// The account that it runs as.
    pub account: ServiceAccount,
    /// The Deployment that runs it.
    pub deployment: Deployment,
    /// The Service in front of it.
    pub service: Service,
    /// The limit of its pods that a drain of nodes may stop at a time.
    pub budget: PodDisruptionBudget,
}

/// Builds all objects that a Skill needs.
pub fn build(skill: &ValidSkill, settings: &Settings) -> Result<PreparedSkill, InvalidSkill> {
    pod_settings::check(skill.spec.pods.as_ref(), settings)?;
    let (revision, revision_ref) = revision::build_revision(skill)?;
    let mcp = match &skill.mcp {
        None => PreparedMcp::Absent,
        Some(ValidMcp::Service(service)) => PreparedMcp::External(service.clone()),
        Some(ValidMcp::Uri(_)) => PreparedMcp::Outside,
        Some(ValidMcp::Container(container)) => PreparedMcp::Managed(Box::new(ManagedMcp {
            account: mcp_account::build_mcp_account(skill),
            deployment: mcp_deployment::build_mcp_deployment(skill, container, settings)?,
            service: mcp_service::build_mcp_service(skill, container),
            budget: mcp_budget::build_mcp_budget(skill),
        })),
    };
    Ok(PreparedSkill {
        memory_claim: memory_claim::build_memory_claim(&skill.namespace, &settings.memory),
        revision,
        revision_ref,
        worker_account: worker_account::build_worker_account(skill),
        mcp,
    })
}
