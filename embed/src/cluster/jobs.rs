//! Reads and changes Jobs, through the API server.

use super::{Cluster, Right, list_all};
use crate::error::{Error, ErrorKind};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::Job;
use kube::api::{ListParams, Patch};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// A client for Jobs. Clones share the connections.
#[derive(Clone)]
pub struct Client {
    /// The cluster.
    pub cluster: Cluster,
    jobs: Api<Job>,
}

impl Client {
    /// Creates a client for the namespace of a cluster.
    pub fn new(cluster: Cluster) -> Self {
        let jobs = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Self { cluster, jobs }
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

    /// Reads a Job again.
    ///
    /// # Errors
    /// If it was deleted, even if a new Job has the same name, or cannot be read.
    pub async fn reread(&self, job: &Job) -> Result<Job, Error> {
        let name = job.name_any();
        let current = self.job(&name).await?;
        if current.uid() == job.uid() { Ok(current) } else { Err(deleted_error(&name)) }
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
                let doing = "listing the Jobs of all namespaces (`options.namespace` selects one)";
                Err(self.cluster.refusal_error_everywhere(doing, &error, vec![Right::on_jobs("list")]).await)
            }
            Err(error) => Err(self.read_error(&error, "list").await),
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
        let message = format!("the namespace {} has no Job {name}.{near}", self.cluster.namespace);
        Ok(Error::new(ErrorKind::NotFound, message))
    }

    /// Returns the error of a failed read of Jobs.
    async fn read_error(&self, error: &kube::Error, verb: &'static str) -> Error {
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
        self.jobs
            .patch(&job.name_any(), &self.cluster.patch_params(), &Patch::Merge(&patch))
            .await
            .map(without_managed_fields)
    }

    /// Requests the cancellation of a Job.
    ///
    /// # Errors
    /// If the Job was deleted, or the API server refuses the request.
    pub async fn cancel(&self, job: &Job) -> Result<Job, Error> {
        let name = job.name_any();
        let unchanged_only = false;
        match self.patch(job, json!({ "spec": { "cancel": true } }), unchanged_only).await {
            Ok(job) => Ok(job),
            // Another Job has the name now.
            Err(kube::Error::Api(status)) if status.code == 409 => Err(deleted_error(&name)),
            Err(error) => Err(self.patch_error(&name, &format!("cancelling {name}"), &error).await),
        }
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
pub fn is_refusal(error: &kube::Error) -> bool {
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
