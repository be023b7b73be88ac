//! Reads Approvals and writes decisions, through the API server.

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

/// The field manager of all writes.
const MANAGER: &str = "kubectl-bloomery";

/// A client for Approvals.
pub(super) struct Client {
    /// The cluster.
    pub cluster: Cluster,
    approvals: Api<Approval>,
}

impl Client {
    /// Creates a client for the namespace of a cluster.
    pub fn new(cluster: Cluster) -> Self {
        let approvals = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { cluster, approvals }
    }

    /// Returns the Approval of a name, or the Approvals of the Job of that name.
    ///
    /// # Errors
    /// If there is none, or they cannot be read.
    pub async fn find(&self, name: &str) -> Result<Found, Error> {
        match self.look_up(name).await {
            Ok(Ok(named)) => Ok(named),
            Ok(Err(known)) => {
                // Without the right to read Jobs this check is skipped.
                check_asked(name, self.job(name).await.ok().flatten().as_ref())?;
                Err(select::not_found(name, &self.cluster.namespace, &known))
            }
            Err(error) => Err(self.read_error(&error).await?),
        }
    }

    /// Looks up a name. If there is nothing, returns the names of all Approvals and their Jobs.
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

    /// Returns a Job. Parts of it may be invalid.
    async fn job(&self, name: &str) -> kube::Result<Option<DeserializeGuard<Job>>> {
        let jobs: Api<DeserializeGuard<Job>> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        jobs.get_opt(name).await
    }

    /// Returns all Approvals of the Job that an Approval belongs to.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn of_same_job(&self, one: &Approval) -> kube::Result<Vec<Approval>> {
        let is_of_job = |other: &Approval| (&other.spec.job, &other.spec.job_uid) == (&one.spec.job, &one.spec.job_uid);
        self.cluster.approvals(is_of_job).await
    }

    /// Checks that the Job of an Approval exists, and asks for decisions on its call; otherwise a decision has no effect. Without
    /// the right to read Jobs this check is skipped.
    ///
    /// # Errors
    /// If the Job is gone, asks nobody, or cannot be read.
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

    /// Returns the error of a failed read of Approvals.
    async fn read_error(&self, error: &kube::Error) -> Result<Error, Error> {
        let failure = self.cluster.request_error("reading Approvals", error);
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                Ok(Error::failed("the cluster has no Approvals API: check that Bloomery is installed"))
            }
            kube::Error::Api(status) if status.code == 403 => {
                self.with_missing_rights(rights::to_read(), failure.message).await
            }
            _ => Ok(failure),
        }
    }

    /// Writes a decision on an Approval, at the version that was read. A changed Approval is not written.
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

    /// Returns the result of a decision that met a newer version. A repeated request may have met its own decision.
    async fn changed(&self, name: &str, decision: ApprovalDecision) -> Result<Approval, Error> {
        let there = self.approvals.get_opt(name).await;
        match there.map_err(|error| self.cluster.request_error(&format!("reading {name}"), &error))? {
            Some(approval) if approval.spec.decision.as_ref() == Some(&decision) => Ok(approval),
            there => Err(select::changed(there.as_ref(), name, Timestamp::now())),
        }
    }

    /// Adds the missing rights to a refusal.
    async fn with_missing_rights(&self, rights: Vec<Right>, refused: String) -> Result<Error, Error> {
        let missing = self.cluster.missing(rights).await?;
        if missing.is_empty() {
            return Ok(Error::failed(refused));
        }
        let user = self.cluster.user().await?;
        Ok(Error::failed(format!("{refused}\n{}", rights::missing_message(&user, &self.cluster.namespace, &missing))))
    }
}

/// Checks that the Job asks for decisions on its call, as far as it can be read.
fn check_asked(name: &str, job: Option<&DeserializeGuard<Job>>) -> Result<(), Error> {
    let why = job.and_then(|job| jobs::not_asked_reason(job.0.as_ref().ok()?));
    why.map_or(Ok(()), |why| Err(select::not_asked(name, why)))
}
