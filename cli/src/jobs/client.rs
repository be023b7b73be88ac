//! Reads and changes Jobs, through the API server.

use super::cluster_command::ClusterCommand;
use super::state::{self, DecisionState};
use crate::cluster::{Cluster, Right, list_all, patch_params};
use crate::error::Error;
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, Job};
use jiff::Timestamp;
use kube::api::{ListParams, Patch};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// A client for Jobs.
pub struct Client {
    /// The cluster.
    pub cluster: Cluster,
    jobs: Api<Job>,
}

impl Client {
    /// Creates a client for the namespace that the command line selects.
    ///
    /// # Errors
    /// If there is no usable kubeconfig.
    pub async fn open(command: &ClusterCommand<'_>) -> Result<Self, Error> {
        let cluster = Cluster::from_args(command.cluster).await?;
        let jobs = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Ok(Self { cluster, jobs })
    }

    /// Returns the Job with this name.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub async fn job(&self, name: &str) -> Result<Job, Error> {
        match self.jobs.get_opt(name).await {
            Ok(Some(job)) => Ok(without_managed_fields(job)),
            Ok(None) => Err(self.not_found_error(name).await?),
            Err(error) => Err(self.read_error(&error, "get").await),
        }
    }

    /// Lists the Jobs of the namespace, or of all namespaces.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn jobs(&self, in_all_namespaces: bool) -> Result<Vec<Job>, Error> {
        let all = || Api::all(self.cluster.client.clone());
        let jobs = if in_all_namespaces { all() } else { self.jobs.clone() };
        match list_all(&jobs, ListParams::default(), |_| true).await {
            Ok(jobs) => Ok(jobs.into_iter().map(without_managed_fields).collect()),
            Err(error) if in_all_namespaces && is_refusal(&error) => {
                let doing = "listing the Jobs of all namespaces (-n NAMESPACE selects one)";
                Err(self.cluster.refusal_error_everywhere(doing, &error, vec![Right::on_jobs("list")]).await)
            }
            Err(error) => Err(self.read_error(&error, "list").await),
        }
    }

    /// Returns the state of the decision on a Job's held call. A single denial decides. An Approval that cannot be read counts as
    /// open.
    pub async fn decision_state(&self, job: &Job) -> DecisionState {
        if let Some(reason) = state::not_requested_reason(job) {
            return DecisionState::NotRequested(reason.to_owned());
        }
        if state::approvals(job).is_empty() {
            return DecisionState::NoCall;
        }
        let (now, mut past_expiry) = (Timestamp::now(), false);
        let api: Api<Approval> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let mut open = Vec::new();
        for name in state::approvals(job) {
            let named = api.get_opt(name).await.ok().flatten();
            let approval = named.filter(|approval| Some(&approval.spec.job_uid) == job.uid().as_ref());
            match approval.as_ref().and_then(state::verdict) {
                Some(ApprovalVerdict::Approve) => {}
                Some(ApprovalVerdict::Deny | ApprovalVerdict::Expired) => return DecisionState::Decided,
                None if approval.is_some_and(|approval| now >= approval.spec.expires_at.0) => past_expiry = true,
                None => open.push(name.clone()),
            }
        }
        match (past_expiry, open.is_empty()) {
            // An Approval is past its time and has no verdict yet. Like a denial, a single expiry decides.
            (true, _) => DecisionState::Expired,
            (false, true) => DecisionState::Decided,
            (false, false) => DecisionState::Open(open),
        }
    }

    /// Returns the error for a name without a Job, with a suggestion.
    ///
    /// # Errors
    /// If the names of the Jobs cannot be listed.
    async fn not_found_error(&self, name: &str) -> Result<Error, Error> {
        let near = match self.jobs.list_metadata(&ListParams::default()).await {
            Ok(known) if known.items.is_empty() => " There are no Jobs in it.".to_owned(),
            Ok(known) => {
                let known: Vec<String> = known.items.iter().map(ResourceExt::name_any).collect();
                nearest::did_you_mean(name, known.iter().map(String::as_str))
            }
            // Without the right to list Jobs, the error has no suggestion.
            Err(error) if is_refusal(&error) => String::new(),
            Err(error) => return Err(self.read_error(&error, "list").await),
        };
        Ok(Error::usage(format!("the namespace {} has no Job {name}.{near}", self.cluster.namespace)))
    }

    /// Returns the error of a failed read of Jobs.
    pub async fn read_error(&self, error: &kube::Error, verb: &'static str) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                Error::failed("the cluster has no Jobs API: check that Bloomery is installed")
            }
            _ => self.cluster.refusal_error("reading Jobs", error, vec![Right::on_jobs(verb)]).await,
        }
    }

    /// Patches a Job. The patch fails if the Job was deleted and created again. With `unchanged_only`, it also fails if the Job
    /// has changed since it was read.
    ///
    /// # Errors
    /// If the API server refuses the patch, or cannot be reached.
    pub async fn patch(&self, job: &Job, mut patch: Value, unchanged_only: bool) -> kube::Result<Job> {
        let mut metadata = json!({ "uid": job.uid() });
        if unchanged_only && let Some(fields) = metadata.as_object_mut() {
            fields.insert("resourceVersion".to_owned(), json!(job.resource_version()));
        }
        if let Some(fields) = patch.as_object_mut() {
            fields.insert("metadata".to_owned(), metadata);
        }
        self.jobs.patch(&job.name_any(), &patch_params(), &Patch::Merge(&patch)).await.map(without_managed_fields)
    }

    /// Returns the error of a failed patch.
    pub async fn patch_error(&self, name: &str, doing: &str, error: &kube::Error) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => deleted_error(name),
            error if is_refusal(error) => self.cluster.refusal_error(doing, error, vec![Right::on_jobs("patch")]).await,
            _ => self.cluster.request_error(doing, error),
        }
    }
}

/// Returns whether the API server has refused a request because of missing rights.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Returns the error for a Job that was deleted meanwhile.
pub fn deleted_error(name: &str) -> Error {
    Error::too_late(format!("the Job {name} was deleted meanwhile"))
}

/// Removes the managed fields, as kubectl does.
fn without_managed_fields(mut job: Job) -> Job {
    job.metadata.managed_fields = None;
    job
}
