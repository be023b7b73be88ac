//! Applies the objects that a Skill needs, and keeps the result for each.

use super::build::{ManagedMcp, PreparedMcp, PreparedSkill};
use super::fetch::FetchedSkill;
use super::network::{PreparedNetwork, SkillPolicies};
use crate::apply::{Applier, ApplyResult, KnownObject};
use crate::error::Error;
use bloomery_crds::v1alpha1::{McpService, RevisionRef};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::ResourceExt;

/// The results of applying the objects that a Skill needs.
#[derive(Debug, PartialEq)]
pub struct AppliedSkill {
    /// The memory of the tenant.
    pub memory_claim: ApplyResult<PersistentVolumeClaim>,
    /// The compiled Skill.
    pub revision: ApplyResult<ConfigMap>,
    /// The reference by which Jobs name the revision.
    pub revision_ref: RevisionRef,
    /// The account that workers run as.
    pub worker_account: ApplyResult<ServiceAccount>,
    /// The MCP server.
    pub mcp: AppliedMcp,
    /// The network.
    pub network: AppliedNetwork,
}

/// The network of a Skill.
#[derive(Debug, Default, PartialEq)]
pub struct AppliedNetwork {
    /// The results of applying the policies, each with the name of the policy; none if the installation has no policies.
    pub policies: Option<Vec<(String, ApplyResult<NetworkPolicy>)>>,
    /// What the Skill may not connect to.
    pub faults: Vec<String>,
}

/// The result of applying the objects of the MCP server.
#[derive(Debug, PartialEq)]
pub enum AppliedMcp {
    /// The Skill has no MCP server.
    Absent,
    /// The MCP server is a Service that the operator does not run.
    External(McpService),
    /// The MCP server is outside of the cluster.
    Outside,
    /// Each worker pod has the MCP server as a sidecar.
    Sidecar,
    /// The operator runs the MCP server.
    Managed {
        /// The account that it runs as.
        account: ApplyResult<ServiceAccount>,
        /// The Deployment that runs it.
        deployment: Box<ApplyResult<Deployment>>,
        /// The Service in front of it.
        service: Box<ApplyResult<Service>>,
        /// The limit of its pods that a drain of nodes may stop at a time.
        budget: Box<ApplyResult<PodDisruptionBudget>>,
    },
}

/// Applies all objects concurrently. The network comes before them: pods are isolated before they start.
///
/// # Errors
/// Returns the first error that may be temporary. A permanent refusal by the API server is a result, so that the status
/// can report it.
pub async fn apply(
    prepared: PreparedSkill,
    network: AppliedNetwork,
    fetched: &FetchedSkill,
    applier: &Applier,
) -> Result<AppliedSkill, Error> {
    // Without `..`, so that a new object does not compile here until it is applied.
    let PreparedSkill { memory_claim, revision, revision_ref, worker_account, mcp } = prepared;
    let known_revision = fetched.revisions.iter().find(|known| known.metadata.name == revision.metadata.name);
    let (memory_claim, revision, worker_account, mcp) = tokio::try_join!(
        async {
            match fetched.memory_claim {
                // An existing claim is never changed.
                Some(_) => Ok(ApplyResult::Unchanged),
                None => applier.create_unowned(&memory_claim).await,
            }
        },
        applier.apply(&revision, known_revision.and_then(|known| KnownObject::metadata(known))),
        applier.apply(&worker_account, fetched.worker_account.as_deref().and_then(KnownObject::full)),
        Box::pin(apply_mcp(mcp, fetched, applier)),
    )?;
    Ok(AppliedSkill { memory_claim, revision, revision_ref, worker_account, mcp, network })
}

async fn apply_mcp(mcp: PreparedMcp, fetched: &FetchedSkill, applier: &Applier) -> Result<AppliedMcp, Error> {
    let managed = match mcp {
        PreparedMcp::Absent => return Ok(AppliedMcp::Absent),
        PreparedMcp::External(service) => return Ok(AppliedMcp::External(service)),
        PreparedMcp::Outside => return Ok(AppliedMcp::Outside),
        PreparedMcp::Sidecar => return Ok(AppliedMcp::Sidecar),
        PreparedMcp::Managed(managed) => managed,
    };
    let ManagedMcp { account, deployment, service, budget } = *managed;
    // The account is applied before the Deployment. Otherwise Kubernetes may refuse the first pod, and show an Event about
    // this for an hour.
    let account = applier.apply(&account, fetched.mcp_account.as_deref().and_then(KnownObject::full)).await?;
    let (deployment, service, budget) = tokio::try_join!(
        applier.apply(&deployment, fetched.mcp_deployment.as_deref().and_then(KnownObject::full)),
        applier.apply(&service, fetched.mcp_service.as_deref().and_then(KnownObject::full)),
        applier.apply(&budget, fetched.mcp_budget.as_deref().and_then(KnownObject::full)),
    )?;
    Ok(AppliedMcp::Managed {
        account,
        deployment: Box::new(deployment),
        service: Box::new(service),
        budget: Box::new(budget),
    })
}

/// Applies the network policies. The one that isolates the pods comes last: running Jobs keep what the others allow.
///
/// # Errors
/// As [`apply`].
pub async fn apply_network(
    network: PreparedNetwork,
    fetched: &FetchedSkill,
    applier: &Applier,
) -> Result<AppliedNetwork, Error> {
    let PreparedNetwork { policies, faults } = network;
    let Some(SkillPolicies { isolation, workers, mcp }) = policies else {
        return Ok(AppliedNetwork { policies: None, faults });
    };
    let known = |policy: &NetworkPolicy| {
        fetched.network_policies.get(&policy.name_any()).and_then(|known| KnownObject::full(known.as_ref()))
    };
    let of_mcp = async {
        match &mcp {
            Some(mcp) => applier.apply(mcp, known(mcp)).await.map(Some),
            None => Ok(None),
        }
    };
    let (of_workers, of_mcp) = tokio::try_join!(applier.apply(&workers, known(&workers)), of_mcp)?;
    let isolated = applier.apply_unowned(&isolation, known(&isolation)).await?;
    let always = [(isolation.name_any(), isolated), (workers.name_any(), of_workers)];
    let of_mcp = mcp.map(|mcp| mcp.name_any()).zip(of_mcp);
    Ok(AppliedNetwork { policies: Some(always.into_iter().chain(of_mcp).collect()), faults })
}

impl AppliedNetwork {
    fn policies(&self) -> impl Iterator<Item = &(String, ApplyResult<NetworkPolicy>)> {
        self.policies.iter().flatten()
    }

    /// Returns the first refusal of a policy by the API server as an error, so that the apply is retried.
    pub fn refusal(&self) -> Option<Error> {
        self.policies().find_map(|(name, policy)| refused(&format!("the NetworkPolicy {name}"), policy))
    }
}

/// Returns the refusal of an object as an error.
fn refused<K>(what: &str, applied: &ApplyResult<K>) -> Option<Error> {
    let ApplyResult::Refused(why) = applied else { return None };
    Some(Error::Refused { what: what.to_owned(), why: why.clone() })
}

impl AppliedSkill {
    /// Returns whether a conflicting object has the name of a wanted object: it has another owner, or is immutable and has
    /// other content.
    pub fn has_conflicting_object(&self) -> bool {
        fn is_conflicting<K>(applied: &ApplyResult<K>) -> bool {
            matches!(applied, ApplyResult::NameTaken | ApplyResult::Replaced)
        }
        let Self { memory_claim, revision, revision_ref: _, worker_account, mcp, network } = self;
        let has_conflicting_mcp_object = match mcp {
            AppliedMcp::Absent | AppliedMcp::External(_) | AppliedMcp::Outside | AppliedMcp::Sidecar => false,
            AppliedMcp::Managed { account, deployment, service, budget } => {
                is_conflicting(account)
                    || is_conflicting(deployment)
                    || is_conflicting(service)
                    || is_conflicting(budget)
            }
        };
        is_conflicting(memory_claim)
            || is_conflicting(revision)
            || is_conflicting(worker_account)
            || has_conflicting_mcp_object
            || network.policies().any(|(_, policy)| is_conflicting(policy))
    }

    /// Returns the first refusal of the API server as an error, so that the apply is retried. The cause of a refusal, such
    /// as a quota or a webhook, is not watched.
    pub fn refusal(&self) -> Option<Error> {
        let Self { memory_claim, revision, revision_ref: _, worker_account, mcp, network } = self;
        let mcp_refusal = || match mcp {
            AppliedMcp::Absent | AppliedMcp::External(_) | AppliedMcp::Outside | AppliedMcp::Sidecar => None,
            AppliedMcp::Managed { account, deployment, service, budget } => {
                refused("the MCP server's ServiceAccount", account)
                    .or_else(|| refused("the MCP server's Deployment", deployment))
                    .or_else(|| refused("the MCP server's Service", service))
                    .or_else(|| refused("the MCP server's PodDisruptionBudget", budget))
            }
        };
        refused("the memory claim", memory_claim)
            .or_else(|| refused("the revision's ConfigMap", revision))
            .or_else(|| refused("the workers' ServiceAccount", worker_account))
            .or_else(|| network.refusal())
            .or_else(mcp_refusal)
    }
}
