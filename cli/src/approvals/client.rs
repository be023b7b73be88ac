//! The shell: reads Approvals and writes a decision, through the API server.

use super::rights;
use super::select::{self, Found};
use crate::cluster::{Cluster, Right};
use crate::error::Error;
use crate::jobs;
use bloomery_crds::v1alpha1::{Approval, ApprovalDecision, Job};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;

/// Who wrote a field, for whoever asks the API server.
const MANAGER: &str = "kubectl-bloomery";

/// Where decisions are made.
pub(super) struct Client {
    /// The cluster.
    pub cluster: Cluster,
    approvals: Api<Approval>,
}

impl Client {
    /// In the namespace of a cluster.
    pub fn new(cluster: Cluster) -> Self {
        let approvals = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { cluster, approvals }
    }

    /// What there is under a name: an Approval, or those of a Job.
    ///
    /// # Errors
    /// If there is nothing, or it may not be read.
    pub async fn find(&self, name: &str) -> Result<Found, Error> {
        match self.look_up(name).await {
            Ok(Ok(named)) => Ok(named),
            Ok(Err(known)) => {
                // Who may not read Jobs does not hear of it.
                check_asked(name, self.job(name).await.ok().flatten().as_ref())?;
                Err(select::not_found(name, &self.cluster.namespace, &known))
            }
            Err(error) => Err(self.read_error(&error).await?),
        }
    }

    /// What there is; where there is nothing, the names of all Approvals and of their Jobs.
    async fn look_up(&self, name: &str) -> kube::Result<Result<Found, BTreeSet<String>>> {
        if let Some(approval) = self.approvals.get_opt(name).await? {
            return Ok(Ok(Found::Approval(Box::new(approval))));
        }
        let mut known = BTreeSet::new();
        let of_job = self.cluster.approvals(|approval| {
            known.extend([approval.name_any(), approval.spec.job.clone()]);
            approval.spec.job == name
        });
        let of_job = of_job.await?;
        Ok(if of_job.is_empty() { Err(known) } else { Ok(Found::OfJob(name.to_owned(), of_job)) })
    }

    /// A Job, also one that can be read in part only.
    async fn job(&self, name: &str) -> kube::Result<Option<DeserializeGuard<Job>>> {
        let jobs: Api<DeserializeGuard<Job>> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        jobs.get_opt(name).await
    }

    /// The Approvals of the Job that one of them belongs to.
    ///
    /// # Errors
    /// If they may not be read.
    pub async fn of_same_job(&self, one: &Approval) -> kube::Result<Vec<Approval>> {
        let is_of_job = |other: &Approval| (&other.spec.job, &other.spec.job_uid) == (&one.spec.job, &one.spec.job_uid);
        self.cluster.approvals(is_of_job).await
    }

    /// That the Job is there which an Approval is of, and that somebody is asked about its call: else nothing comes of a
    /// decision. Who may not read Jobs is not kept from deciding.
    ///
    /// # Errors
    /// If it is gone, nobody is asked, or it cannot be asked for.
    pub async fn check_job_of(&self, approval: &Approval) -> Result<(), Error> {
        let name = &approval.spec.job;
        match self.job(name).await {
            Ok(found) => {
                select::check_job(approval, found.as_ref().map(|job| job.uid().unwrap_or_default()).as_deref())?;
                check_asked(name, found.as_ref())
            }
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            Err(error) => Err(self.cluster.request_error(&format!("reading the Job {name}"), &error)),
        }
    }

    /// Why Approvals cannot be read.
    async fn read_error(&self, error: &kube::Error) -> Result<Error, Error> {
        let told = self.cluster.request_error("reading Approvals", error);
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                Ok(Error::failed("the cluster knows no Approvals: is Bloomery installed in it?"))
            }
            kube::Error::Api(status) if status.code == 403 => {
                self.with_missing_rights(rights::to_read(), told.message).await
            }
            _ => Ok(told),
        }
    }

    /// Decides on an Approval, as it was read: where it has changed since, nothing is written.
    ///
    /// # Errors
    /// If it has changed, or the API server refuses the decision.
    pub async fn decide(&self, shown: &Approval, decision: ApprovalDecision) -> Result<Approval, Error> {
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
                Err(self.with_missing_rights(rights::to_decide(&shown.spec.approver, Some(&name)), refused).await?)
            }
            Err(error) => Err(self.cluster.request_error(&format!("deciding on {name}"), &error)),
        }
    }

    /// What came of a decision that met another version. A request that was sent twice may have met itself.
    async fn changed(&self, name: &str, decision: ApprovalDecision) -> Result<Approval, Error> {
        let there = self.approvals.get_opt(name).await;
        match there.map_err(|error| self.cluster.request_error(&format!("reading {name}"), &error))? {
            Some(approval) if approval.spec.decision.as_ref() == Some(&decision) => Ok(approval),
            there => Err(select::changed(there.as_ref(), name, Timestamp::now())),
        }
    }

    /// What the API server refuses, and which of the rights that it takes are missing.
    async fn with_missing_rights(&self, rights: Vec<Right>, refused: String) -> Result<Error, Error> {
        let missing = self.cluster.missing(rights).await?;
        if missing.is_empty() {
            return Ok(Error::failed(refused));
        }
        let user = self.cluster.user().await?;
        Ok(Error::failed(format!("{refused}\n{}", rights::missing_message(&user, &self.cluster.namespace, &missing))))
    }
}

/// That somebody is asked about the call of a Job, as far as that can be read.
fn check_asked(name: &str, job: Option<&DeserializeGuard<Job>>) -> Result<(), Error> {
    let why = job.and_then(|job| jobs::not_asked_reason(job.0.as_ref().ok()?));
    why.map_or(Ok(()), |why| Err(select::not_asked(name, why)))
}
