//! The shell: reads Approvals and writes a decision, through the API server.

use super::rights;
use super::which::{self, Named};
use crate::cluster::{Cluster, Right, failed};
use crate::exit::Trouble;
use bloomery_crds::names::LABEL_JOB;
use bloomery_crds::v1alpha1::{Approval, ApprovalDecision};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;

/// Who wrote a field, for whoever asks the API server.
const MANAGER: &str = "kubectl-bloomery";

/// Where decisions are made.
pub(super) struct Desk {
    /// The cluster.
    pub cluster: Cluster,
    approvals: Api<Approval>,
}

impl Desk {
    /// In the namespace of a cluster.
    pub fn new(cluster: Cluster) -> Self {
        let approvals = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { cluster, approvals }
    }

    /// What there is under a name: an Approval, or those of a Job.
    ///
    /// # Errors
    /// If there is nothing, or it may not be read.
    pub async fn named(&self, name: &str) -> Result<Named, Trouble> {
        match self.look_up(name).await {
            Ok(Some(named)) => Ok(named),
            Ok(None) => Err(which::unknown(name, &self.cluster.namespace, &self.known().await?)),
            Err(error) => Err(self.unreadable(&error).await?),
        }
    }

    async fn look_up(&self, name: &str) -> kube::Result<Option<Named>> {
        if let Some(approval) = self.approvals.get_opt(name).await? {
            return Ok(Some(Named::Approval(Box::new(approval))));
        }
        let of_job = self.of_job(name).await?;
        Ok((!of_job.is_empty()).then(|| Named::OfJob(name.to_owned(), of_job)))
    }

    /// The Approvals of a Job.
    ///
    /// # Errors
    /// If they may not be read.
    pub async fn of_job(&self, job: &str) -> kube::Result<Vec<Approval>> {
        let of_job = ListParams::default().labels(&format!("{LABEL_JOB}={job}"));
        Ok(self.approvals.list(&of_job).await?.items)
    }

    /// The names of all Approvals, and of their Jobs.
    async fn known(&self) -> Result<BTreeSet<String>, Trouble> {
        let all = self.approvals.list_metadata(&ListParams::default()).await;
        let all = all.map_err(|error| failed("listing Approvals", &error))?.items;
        let jobs = all.iter().filter_map(|approval| approval.labels().get(LABEL_JOB).cloned());
        Ok(all.iter().map(ResourceExt::name_any).chain(jobs).collect())
    }

    /// Why Approvals cannot be read.
    async fn unreadable(&self, error: &kube::Error) -> Result<Trouble, Trouble> {
        let told = failed("reading Approvals", error);
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                Ok(Trouble::failed("the cluster knows no Approvals: is Bloomery installed in it?"))
            }
            kube::Error::Api(status) if status.code == 403 => self.lacking(rights::to_read(), told.message).await,
            _ => Ok(told),
        }
    }

    /// Decides on an Approval, as it was read: where it has changed since, nothing is written.
    ///
    /// # Errors
    /// If it has changed, or the API server refuses the decision.
    pub async fn decide(&self, shown: &Approval, decision: ApprovalDecision) -> Result<Approval, Trouble> {
        let name = shown.name_any();
        let patch = json!({
            "metadata": { "uid": shown.uid(), "resourceVersion": shown.resource_version() },
            "spec": { "decision": decision },
        });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match self.approvals.patch(&name, &params, &Patch::Merge(&patch)).await {
            Ok(mut decided) => {
                decided.metadata.managed_fields = None;
                Ok(decided)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => self.changed(&name, decision).await,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let refused = format!("the API server refuses the decision on {name}: {}", status.message);
                Err(self.lacking(rights::to_decide(&shown.spec.approver, Some(&name)), refused).await?)
            }
            Err(error) => Err(failed(&format!("deciding on {name}"), &error)),
        }
    }

    /// What came of a decision that met another version. A request that was sent twice may have met itself.
    async fn changed(&self, name: &str, decision: ApprovalDecision) -> Result<Approval, Trouble> {
        let there = self.approvals.get_opt(name).await.map_err(|error| failed(&format!("reading {name}"), &error))?;
        match there {
            Some(approval) if approval.spec.decision.as_ref() == Some(&decision) => Ok(approval),
            there => Err(which::changed(there.as_ref(), name, Timestamp::now())),
        }
    }

    /// What the API server refuses, and which of the rights that it takes are missing.
    async fn lacking(&self, rights: Vec<Right>, refused: String) -> Result<Trouble, Trouble> {
        let missing = self.cluster.missing(rights).await?;
        if missing.is_empty() {
            return Ok(Trouble::failed(refused));
        }
        let user = self.cluster.user().await?;
        Ok(Trouble::failed(format!("{refused}\n{}", rights::told(&user, &self.cluster.namespace, &missing))))
    }
}
