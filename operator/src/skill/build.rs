//! The objects that a Skill needs, each built in a file of its own.

mod mcp_account;
mod mcp_deployment;
mod mcp_service;
mod memory_claim;
mod metadata;
mod revision;
mod worker_account;

use super::validate::{InvalidSkill, ValidMcp, ValidSkill};
use crate::settings::Settings;
use bloomery_crds::v1alpha1::{McpService, RevisionRef};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};

/// Everything that a Skill needs, as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedSkill {
    /// The memory of the tenant.
    pub memory_claim: PersistentVolumeClaim,
    /// The compiled Skill.
    pub revision: ConfigMap,
    /// How Jobs refer to it.
    pub revision_ref: RevisionRef,
    /// Who workers run as.
    pub worker_account: ServiceAccount,
    /// The MCP server.
    pub mcp: PreparedMcp,
}

/// The MCP server of a Skill.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedMcp {
    /// There is none.
    Absent,
    /// It is a Service that somebody else runs.
    External(McpService),
    /// The operator runs it.
    Managed(Box<ManagedMcp>),
}

/// What runs an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedMcp {
    /// Who it runs as.
    pub account: ServiceAccount,
    /// What runs it.
    pub deployment: Deployment,
    /// Where it is reached.
    pub service: Service,
}

/// Builds everything that a Skill needs.
pub fn build(skill: &ValidSkill, settings: &Settings) -> Result<PreparedSkill, InvalidSkill> {
    let (revision, revision_ref) = revision::build_revision(skill)?;
    let mcp = match &skill.mcp {
        None => PreparedMcp::Absent,
        Some(ValidMcp::Service(service)) => PreparedMcp::External(service.clone()),
        Some(ValidMcp::Container(container)) => PreparedMcp::Managed(Box::new(ManagedMcp {
            account: mcp_account::build_mcp_account(skill),
            deployment: mcp_deployment::build_mcp_deployment(skill, container),
            service: mcp_service::build_mcp_service(skill, container),
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
