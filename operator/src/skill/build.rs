//! Builds the objects that a Skill needs, one in each file.

mod jwks;
mod mcp_account;
mod mcp_budget;
mod mcp_deployment;
mod mcp_service;
mod memory_claim;
mod metadata;
mod pod_settings;
mod reclaim_pod;
mod revision;
mod worker_account;

pub use mcp_deployment::STARTUP_SECONDS;
pub use metadata::{PORT_NAME, metadata};
pub use reclaim_pod::{COMPONENT as RECLAIM, ReclaimedSkill, build_reclaim_pod};

use super::validate::{InvalidSkill, ValidMcp, ValidSkill};
use crate::mcp_container::{resources, scripts};
use crate::settings::Settings;
use bloomery_crds::v1alpha1::{McpService, RevisionRef};
use bloomery_token::PublicKey;
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
    /// Each worker pod has the MCP server as a sidecar.
    Sidecar,
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

/// Builds all objects that a Skill needs. `keys` are those of the tokens that workers send to MCP servers.
pub fn build(skill: &ValidSkill, settings: &Settings, keys: &[PublicKey]) -> Result<PreparedSkill, InvalidSkill> {
    pod_settings::check(skill.spec.pods.as_ref(), settings)?;
    let (revision, revision_ref) = revision::build_revision(skill)?;
    // The pods of Jobs are built later.
    scripts::sidecar(&skill.spec, &revision_ref.name, &settings.mcp).map_err(InvalidSkill::new)?;
    let mcp = match &skill.mcp {
        None => PreparedMcp::Absent,
        Some(ValidMcp::Service(service)) => PreparedMcp::External(service.clone()),
        Some(ValidMcp::Uri(_)) => PreparedMcp::Outside,
        Some(ValidMcp::Sidecar(container)) => {
            // Each pod is built later. An amount that the installation does not allow is a fault of the Skill.
            resources::resolve(container.resources.as_ref(), &settings.mcp).map_err(InvalidSkill::new)?;
            PreparedMcp::Sidecar
        }
        Some(ValidMcp::Container(container)) => PreparedMcp::Managed(Box::new(ManagedMcp {
            account: mcp_account::build_mcp_account(skill),
            deployment: mcp_deployment::build_mcp_deployment(skill, container, settings, keys)?,
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
