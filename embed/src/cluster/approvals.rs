//! Reads Approvals and writes decisions, through the API server.

pub mod rights;
pub mod select;

use super::{Cluster, Right, state};
use crate::error::{Error, ErrorKind};
use bloomery_crds::v1alpha1::{Approval, ApprovalDecision, ApprovalVerdict, Job};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};
use select::NameMatch;
use serde_json::json;
use std::collections::BTreeSet;

/// A client for Approvals.
pub struct Client {
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

    /// Returns the Approval with this name, or else the Approvals of the Job with this name.
    ///
    /// # Errors
    /// If there are none, or they cannot be read.
    pub async fn find(&self, name: &str) -> Result<NameMatch, Error> {
        match self.look_up(name).await {
            Ok((Some(found), _)) => Ok(found),
            Ok((None, known)) => {
                // The name may be that of a Job that requests no decision. If the Job cannot be read, this check is skipped.
                check_requested(name, self.job(name).await.ok().flatten().as_ref())?;
                Err(select::not_found(name, &self.cluster.namespace, &known))
            }
            Err(error) => Err(self.read_error(&error).await?),
        }
    }

    /// Returns the Approval with this name, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get(&self, name: &str) -> Result<Option<Approval>, Error> {
        match self.approvals.get_opt(name).await {
            Ok(found) => Ok(found),
            Err(error) => Err(self.read_error(&error).await?),
        }
    }

    /// Looks up a name. Also returns the names of all Approvals and their Jobs, or none if an Approval has the name.
    async fn look_up(&self, name: &str) -> kube::Result<(Option<NameMatch>, BTreeSet<String>)> {
        if let Some(approval) = self.approvals.get_opt(name).await? {
            return Ok((Some(NameMatch::Approval(Box::new(approval))), BTreeSet::new()));
        }
        let mut known = BTreeSet::new();
        let of_job = self.cluster.approvals(|approval| {
            known.extend([approval.name_any(), approval.spec.job.clone()]);
            approval.spec.job == name
        });
        let of_job = of_job.await?;
        let found = (!of_job.is_empty()).then(|| NameMatch::OfJob(name.to_owned(), of_job));
        Ok((found, known))
    }

    /// Returns the Job with this name. If its content is invalid, the guard contains the error.
    async fn job(&self, name: &str) -> kube::Result<Option<DeserializeGuard<Job>>> {
        let jobs: Api<DeserializeGuard<Job>> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        jobs.get_opt(name).await
    }

    /// Returns all Approvals of the Job that an Approval belongs to.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn approvals_of_same_job(&self, approval: &Approval) -> kube::Result<Vec<Approval>> {
        let is_of_job =
            |other: &Approval| (&other.spec.job, &other.spec.job_uid) == (&approval.spec.job, &approval.spec.job_uid);
        self.cluster.approvals(is_of_job).await
    }

    /// Checks that the Job of an Approval exists and requests a decision. Otherwise, a decision would have no effect. Skips the
    /// check if the user has no right to read Jobs.
    ///
    /// # Errors
    /// If the Job is deleted, requests no decision, or cannot be read.
    pub async fn check_job_of(&self, approval: &Approval) -> Result<(), Error> {
        let name = &approval.spec.job;
        match self.job(name).await {
            Ok(job) => {
                let uid = job.as_ref().map(|job| job.uid().unwrap_or_default());
                select::check_job(approval, uid.as_deref())?;
                check_requested(name, job.as_ref())
            }
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            Err(error) => Err(self.cluster.request_error(&format!("reading the Job {name}"), &error)),
        }
    }

    /// Returns the error of a failed read of Approvals.
    ///
    /// # Errors
    /// If the missing rights of the user cannot be determined.
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

    /// Writes a decision on the Approval that was shown to the user.
    ///
    /// # Errors
    /// If the Approval has changed since it was shown, or the API server refuses the decision.
    pub async fn decide(&self, shown: &Approval, decision: ApprovalDecision) -> Result<Approval, Error> {
        let name = shown.name_any();
        match self.write(shown, &decision, &self.cluster.patch_params()).await {
            Ok(mut decided) => {
                decided.metadata.managed_fields = None;
                Ok(decided)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                self.check_own_decision(&name, decision).await
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let refused = format!("the API server refuses the decision on {name}: {}", status.message);
                Err(self.with_missing_rights(rights::to_decide(&shown.spec.approver, Some(&name)), refused).await?)
            }
            Err(error) => Err(self.cluster.request_error(&format!("deciding on {name}"), &error)),
        }
    }

    /// Writes a decision on an Approval, if the Approval has not changed.
    async fn write(
        &self,
        shown: &Approval,
        decision: &ApprovalDecision,
        params: &PatchParams,
    ) -> kube::Result<Approval> {
        let patch = json!({
            "metadata": { "uid": shown.uid(), "resourceVersion": shown.resource_version() },
            "spec": { "decision": decision },
        });
        self.approvals.patch(&shown.name_any(), params, &Patch::Merge(&patch)).await
    }

    /// Returns the message with which the API server refuses decisions of this user on an Approval, for example by an admission policy.
    /// `user` is the name of this user at the API server. A dry run asks for the message, and changes nothing. Returns `None` if decisions
    /// are not refused, or if this cannot be checked.
    pub async fn refusal(&self, approval: &Approval, user: &str) -> Option<String> {
        let decision = ApprovalDecision { verdict: ApprovalVerdict::Deny, by: user.to_owned(), reason: None };
        match self.write(approval, &decision, &self.cluster.patch_params().dry_run()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Some(status.message.clone()),
            _ => None,
        }
    }

    /// Checks whether a refused request was a repetition: the client repeats a request whose response was lost, although the API
    /// server may have recorded the decision. Returns the Approval if it already has this decision.
    ///
    /// # Errors
    /// If the Approval has changed otherwise or was deleted, or cannot be read.
    async fn check_own_decision(&self, name: &str, decision: ApprovalDecision) -> Result<Approval, Error> {
        let current = self.approvals.get_opt(name).await;
        match current.map_err(|error| self.cluster.request_error(&format!("reading {name}"), &error))? {
            Some(approval) if approval.spec.decision.as_ref() == Some(&decision) => Ok(approval),
            current => Err(select::changed_error(current.as_ref(), name, Timestamp::now())),
        }
    }

    /// Returns the error for a refused request, with the rights that the user lacks.
    ///
    /// # Errors
    /// If these rights cannot be determined.
    async fn with_missing_rights(&self, rights: Vec<Right>, refused: String) -> Result<Error, Error> {
        let missing = self.cluster.missing_rights(rights).await?;
        if missing.is_empty() {
            return Ok(Error::new(ErrorKind::Forbidden, refused));
        }
        let user = self.cluster.user().await?;
        let missing = rights::missing_message(&user, &self.cluster.namespace, &missing);
        Ok(Error::new(ErrorKind::Forbidden, format!("{refused}\n{missing}")))
    }
}

/// Checks that the Job requests a decision on its call. A Job that is missing or invalid passes the check.
fn check_requested(name: &str, job: Option<&DeserializeGuard<Job>>) -> Result<(), Error> {
    let reason = job.and_then(|job| state::not_requested_reason(job.0.as_ref().ok()?));
    reason.map_or(Ok(()), |reason| Err(select::not_requested_error(name, reason)))
}
