//! Applies what a Skill needs, and keeps what became of each object.

use super::build::{ManagedMcp, PreparedMcp, PreparedSkill};
use super::fetch::FetchedSkill;
use crate::apply::{Applier, ApplyResult, KnownObject};
use crate::error::Error;
use bloomery_crds::v1alpha1::{McpService, RevisionRef};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};

/// What became of everything that a Skill needs. Its status can be computed from nothing else.
#[derive(Debug, PartialEq)]
pub struct AppliedSkill {
    /// The memory of the tenant.
    pub memory_claim: ApplyResult<PersistentVolumeClaim>,
    /// The compiled Skill.
    pub revision: ApplyResult<ConfigMap>,
    /// How Jobs refer to it.
    pub revision_ref: RevisionRef,
    /// Who workers run as.
    pub worker_account: ApplyResult<ServiceAccount>,
    /// The MCP server.
    pub mcp: AppliedMcp,
}

/// What became of the MCP server.
#[derive(Debug, PartialEq)]
pub enum AppliedMcp {
    /// There is none.
    Absent,
    /// It is a Service that somebody else runs.
    External(McpService),
    /// The operator runs it.
    Managed {
        /// Who it runs as.
        account: ApplyResult<ServiceAccount>,
        /// What runs it.
        deployment: Box<ApplyResult<Deployment>>,
        /// Where it is reached.
        service: Box<ApplyResult<Service>>,
    },
}

/// Applies everything, side by side.
///
/// # Errors
/// The first of those that may pass by themselves. What the API server refused for good is no error but a
/// result, so that status can tell of it.
pub async fn apply(prepared: PreparedSkill, fetched: &FetchedSkill, applier: &Applier) -> Result<AppliedSkill, Error> {
    // Without `..`: an object that is added to what is built cannot be forgotten here.
    let PreparedSkill { memory_claim, revision, revision_ref, worker_account, mcp } = prepared;
    let known_revision = fetched.revisions.iter().find(|known| known.metadata.name == revision.metadata.name);
    let (memory_claim, revision, worker_account, mcp) = tokio::try_join!(
        async {
            match fetched.memory_claim {
                Some(_) => Ok(ApplyResult::Unchanged),
                None => applier.create_unowned(&memory_claim).await,
            }
        },
        applier.apply(&revision, known_revision.and_then(|known| KnownObject::metadata(known))),
        applier.apply(&worker_account, fetched.worker_account.as_deref().and_then(KnownObject::full)),
        Box::pin(apply_mcp(mcp, fetched, applier)),
    )?;
    Ok(AppliedSkill { memory_claim, revision, revision_ref, worker_account, mcp })
}

async fn apply_mcp(mcp: PreparedMcp, fetched: &FetchedSkill, applier: &Applier) -> Result<AppliedMcp, Error> {
    let own = match mcp {
        PreparedMcp::Absent => return Ok(AppliedMcp::Absent),
        PreparedMcp::External(service) => return Ok(AppliedMcp::External(service)),
        PreparedMcp::Managed(own) => own,
    };
    let ManagedMcp { account, deployment, service } = *own;
    // Before the Deployment: a pod without its account is refused, and an Event would say so for an hour.
    let account = applier.apply(&account, fetched.mcp_account.as_deref().and_then(KnownObject::full)).await?;
    let (deployment, service) = tokio::try_join!(
        applier.apply(&deployment, fetched.mcp_deployment.as_deref().and_then(KnownObject::full)),
        applier.apply(&service, fetched.mcp_service.as_deref().and_then(KnownObject::full)),
    )?;
    Ok(AppliedMcp::Managed { account, deployment: Box::new(deployment), service: Box::new(service) })
}

impl AppliedSkill {
    /// Whether something is in the way that the operator leaves as it is: nothing may tell when it goes.
    pub fn is_obstructed(&self) -> bool {
        fn obstructs<K>(applied: &ApplyResult<K>) -> bool {
            matches!(applied, ApplyResult::NameTaken | ApplyResult::Replaced)
        }
        let Self { memory_claim, revision, revision_ref: _, worker_account, mcp } = self;
        let by_mcp = match mcp {
            AppliedMcp::Absent | AppliedMcp::External(_) => false,
            AppliedMcp::Managed { account, deployment, service } => {
                obstructs(account) || obstructs(deployment) || obstructs(service)
            }
        };
        obstructs(memory_claim) || obstructs(revision) || obstructs(worker_account) || by_mcp
    }

    /// The refusals of the API server, as an error: what refused (a quota, a webhook) may change its mind, and
    /// tells nobody.
    pub fn refusal(&self) -> Option<Error> {
        fn refused<K>(what: &str, applied: &ApplyResult<K>) -> Option<Error> {
            let ApplyResult::Refused(why) = applied else { return None };
            Some(Error::Refused { what: what.to_owned(), why: why.clone() })
        }
        let Self { memory_claim, revision, revision_ref: _, worker_account, mcp } = self;
        let mcp = || match mcp {
            AppliedMcp::Absent | AppliedMcp::External(_) => None,
            AppliedMcp::Managed { account, deployment, service } => refused("the MCP server's ServiceAccount", account)
                .or_else(|| refused("the MCP server's Deployment", deployment))
                .or_else(|| refused("the MCP server's Service", service)),
        };
        refused("the memory claim", memory_claim)
            .or_else(|| refused("the revision's ConfigMap", revision))
            .or_else(|| refused("the workers' ServiceAccount", worker_account))
            .or_else(mcp)
    }
}
