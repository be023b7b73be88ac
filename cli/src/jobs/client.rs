//! The shell: reads Jobs and writes what people say to them, through the API server.

use super::cluster_command::ClusterCommand;
use super::state::{self, DecisionState};
use crate::cluster::{Cluster, Right, list_all};
use crate::error::Error;
use crate::exit::Exit;
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, Job};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// Who wrote a field, for whoever asks the API server.
const MANAGER: &str = "kubectl-bloomery";

/// Where Jobs are looked at.
pub struct Client {
    /// The cluster.
    pub cluster: Cluster,
    jobs: Api<Job>,
}

impl Client {
    /// In the namespace of the cluster that was named.
    ///
    /// # Errors
    /// If there is no such cluster.
    pub async fn open(command: &ClusterCommand<'_>) -> Result<Self, Error> {
        let cluster = Cluster::find(command.cluster).await?;
        let jobs = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Ok(Self { cluster, jobs })
    }

    /// The Job of a name.
    ///
    /// # Errors
    /// If there is none, or it may not be read.
    pub async fn job(&self, name: &str) -> Result<Job, Error> {
        match self.jobs.get_opt(name).await {
            Ok(Some(job)) => Ok(without_managed_fields(job)),
            Ok(None) => Err(self.not_found_error(name).await?),
            Err(error) => Err(self.read_error(&error, "get").await),
        }
    }

    /// The Jobs of the namespace, or of all.
    ///
    /// # Errors
    /// If they may not be read.
    pub async fn jobs(&self, of_all: bool) -> Result<Vec<Job>, Error> {
        let all = || Api::all(self.cluster.client.clone());
        let jobs = if of_all { all() } else { self.jobs.clone() };
        match list_all(&jobs, ListParams::default(), |_| true).await {
            Ok(jobs) => Ok(jobs.into_iter().map(without_managed_fields).collect()),
            Err(error) if of_all && is_refusal(&error) => {
                let doing = "reading the Jobs of all namespaces (-n NAMESPACE lists those of one)";
                Err(self.cluster.refused_everywhere(doing, &error, vec![Right::on_jobs("list")]).await)
            }
            Err(error) => Err(self.read_error(&error, "list").await),
        }
    }

    /// How it stands with the decision on the call that a Job waits with: it is decided where one has denied it. Who may not
    /// read Approvals takes them for open.
    pub async fn decision_state(&self, job: &Job) -> DecisionState {
        if let Some(why) = state::not_asked_reason(job) {
            return DecisionState::NotAsked(why.to_owned());
        }
        if state::approvals(job).is_empty() {
            return DecisionState::NoCall;
        }
        let (now, mut expired) = (Timestamp::now(), false);
        let api: Api<Approval> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let mut open = Vec::new();
        for name in state::approvals(job) {
            let approval = api.get_opt(name).await.ok().flatten();
            let own = approval.filter(|approval| Some(&approval.spec.job_uid) == job.uid().as_ref());
            match own.as_ref().and_then(state::verdict) {
                Some(ApprovalVerdict::Approve) => {}
                Some(ApprovalVerdict::Deny | ApprovalVerdict::Expired) => return DecisionState::Decided,
                None if own.is_some_and(|approval| now >= approval.spec.expires_at.0) => expired = true,
                None => open.push(name.clone()),
            }
        }
        match (expired, open.is_empty()) {
            // It counts as denied, whatever the others decide.
            (true, _) => DecisionState::Expired,
            (false, true) => DecisionState::Decided,
            (false, false) => DecisionState::Open(open),
        }
    }

    async fn not_found_error(&self, name: &str) -> Result<Error, Error> {
        let near = match self.jobs.list_metadata(&ListParams::default()).await {
            Ok(known) if known.items.is_empty() => " There are no Jobs in it.".to_owned(),
            Ok(known) => {
                let known: Vec<String> = known.items.iter().map(ResourceExt::name_any).collect();
                nearest::did_you_mean(name, known.iter().map(String::as_str))
            }
            // Who may not list them hears all the same that there is no such Job.
            Err(error) if is_refusal(&error) => String::new(),
            Err(error) => return Err(self.read_error(&error, "list").await),
        };
        Ok(Error::usage(format!("the namespace {} has no Job {name}.{near}", self.cluster.namespace)))
    }

    /// Why Jobs cannot be read.
    pub async fn read_error(&self, error: &kube::Error, verb: &'static str) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                Error::failed("the cluster knows no Jobs of Bloomery: is it installed in it?")
            }
            _ => self.cluster.refused("reading Jobs", error, vec![Right::on_jobs(verb)]).await,
        }
    }

    /// Changes a Job as it was read. One that was made anew under the name is another, and is not changed.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub async fn patch(&self, job: &Job, mut patch: Value, as_read: bool) -> kube::Result<Job> {
        let mut metadata = json!({ "uid": job.uid() });
        if as_read && let Some(fields) = metadata.as_object_mut() {
            fields.insert("resourceVersion".to_owned(), json!(job.resource_version()));
        }
        if let Some(fields) = patch.as_object_mut() {
            fields.insert("metadata".to_owned(), metadata);
        }
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.jobs.patch(&job.name_any(), &params, &Patch::Merge(&patch)).await.map(without_managed_fields)
    }

    /// Why a Job was not changed.
    pub async fn patch_error(&self, name: &str, doing: &str, error: &kube::Error) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => deleted_error(name),
            error if is_refusal(error) => self.cluster.refused(doing, error, vec![Right::on_jobs("patch")]).await,
            _ => self.cluster.request_error(doing, error),
        }
    }
}

fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// That a Job was deleted while somebody was at it.
pub fn deleted_error(name: &str) -> Error {
    Error { exit: Exit::TooLate, message: format!("the Job {name} is gone: somebody has deleted it meanwhile") }
}

/// A Job as kubectl shows it.
fn without_managed_fields(mut job: Job) -> Job {
    job.metadata.managed_fields = None;
    job
}
