//! The runtime of a cluster: the Kubernetes API, with the credentials of each caller.

mod caller;
mod context;
mod feed;
mod hub;
mod input;
mod lines;
mod new_job;
mod past;
mod project;
mod reader_pod;
mod rights;
mod subscription;
#[cfg(test)]
mod tests;
mod upstream;
mod window;

pub use caller::Caller;

use crate::cluster::jobs::{Client, is_refusal};
use crate::cluster::{Cluster, Right, list_all, state};
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};
use crate::event::JobEvent;
use crate::input::Input;
use crate::job::{JobStatus, JobSummary, ModelContext, NewJob};
use crate::requests::OpenRequests;
use crate::runtime::{Runtime, Tenant};
use crate::skill::{SkillState, SkillTool, check_skill_name, no_such_skill};
use bloomery_crds::names::{GROUP, is_name};
use bloomery_crds::v1alpha1::{Approval, Job, Skill};
use caller::Connections;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hub::Hub;
use kube::api::{ListParams, PostParams};
use kube::{Api, Config, ResourceExt};
use std::sync::Arc;
use std::time::Duration;
use subscription::Subscription;

/// The longest name of a namespace, in bytes.
const MAX_NAMESPACE_BYTES: usize = 63;

/// The timeout of a timeline.
const TIMELINE_TIMEOUT: Duration = Duration::from_mins(3);

/// The runtime of a cluster. Each tenant is a namespace, and the key of a Job is the name of its object. All requests have the credentials
/// of the caller, so the API server authorizes and records them. All methods need a runtime of tokio.
///
/// The events of a Job come from the logs of its pods, which must be JSON lines (`worker.logFormat: json` in the chart). Those that no pod
/// has any more come from a reader pod, which the caller must have the right to create. The rights on events are those to read the Job and
/// the logs of pods; they are checked again each minute.
pub struct ClusterRuntime {
    shared: Arc<Shared>,
}

/// The part of the runtime that all tenants share.
struct Shared {
    connections: Connections,
    hub: Hub,
    /// The image of reader pods. By default, they have the image of a worker pod.
    reader_image: Option<String>,
}

/// A namespace, opened for a caller.
#[derive(Clone)]
pub struct ClusterTenant {
    shared: Arc<Shared>,
    cluster: Cluster,
}

impl ClusterRuntime {
    /// Creates the runtime of a cluster. The credentials of `config` are used only to impersonate users. Without an image, reader pods have
    /// the image of a worker pod.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn new(config: &Config, reader_image: Option<String>) -> Result<Self, Error> {
        let connections = Connections::new(config)?;
        Ok(Self { shared: Arc::new(Shared { connections, hub: Hub::default(), reader_image }) })
    }
}

impl Runtime for ClusterRuntime {
    type Caller = Caller;
    type Tenant = ClusterTenant;

    /// Opens a namespace. Sends no request: the API server refuses each operation for which the caller lacks a right.
    async fn open(&self, tenant: &str, caller: Caller) -> Result<ClusterTenant, Error> {
        if !is_namespace(tenant) {
            return Err(Error::invalid("a namespace has at most 63 lower-case letters, digits and '-'"));
        }
        let cluster = self.shared.connections.cluster(tenant, &caller)?;
        Ok(ClusterTenant { shared: Arc::clone(&self.shared), cluster })
    }
}

/// Returns whether a namespace can have this name. Such a name is one segment of the path of a request.
fn is_namespace(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=MAX_NAMESPACE_BYTES).contains(&name.len()) && name.chars().all(is_allowed)
}

impl ClusterTenant {
    fn jobs_client(&self) -> Client {
        Client::new(self.cluster.clone())
    }

    fn jobs_api(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace)
    }

    /// Reads a Job.
    async fn job(&self, key: &str) -> Result<Job, Error> {
        if !is_name(key) {
            return Err(Error::new(ErrorKind::NotFound, "there is no Job of that key: a key is the name of a Job"));
        }
        self.jobs_client().job(key).await
    }

    /// Reads the Job that an earlier start with the key of a new Job has created. Returns `None` if there is none yet, or the caller may not
    /// read it: the API server refuses a second one.
    async fn earlier(&self, job: &Job) -> Result<Option<Job>, Error> {
        let Some(name) = &job.metadata.name else { return Ok(None) };
        match self.jobs_api().get_opt(name).await {
            Ok(found) => Ok(found),
            Err(error) if is_refusal(&error) => Ok(None),
            Err(error) => Err(self.cluster.request_error(&format!("reading the Job {name}"), &error)),
        }
    }

    /// Reads the Skill of a new Job. Returns `None` if the operator may create it from a template, or the caller may not read it. The operator
    /// checks the Job in any case.
    async fn skill_of(&self, job: &Job) -> Result<Option<Skill>, Error> {
        let name = &job.spec.skill;
        check_skill_name(name)?;
        let api: Api<Skill> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        match api.get_opt(name).await {
            Ok(None) if !job.bootstraps_skill() => {
                // Without the right to list Skills, the error names no others.
                let known = Box::pin(self.list_skills()).await.unwrap_or_default();
                Err(self.no_such_skill(name, &known))
            }
            Ok(found) => Ok(found),
            Err(error) if is_refusal(&error) => Ok(None),
            Err(error) => Err(self.cluster.request_error(&format!("reading the Skill {name}"), &error)),
        }
    }

    /// Lists the Skills.
    async fn list_skills(&self) -> Result<Vec<Skill>, Error> {
        let api: Api<Skill> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        match list_all(&api, ListParams::default(), |_| true).await {
            Ok(skills) => Ok(skills),
            Err(error) => {
                let right = Right { group: GROUP, verb: "list", resource: "skills", name: None };
                Err(self.cluster.refusal_error("reading Skills", &error, vec![right]).await)
            }
        }
    }

    /// Returns the error for the name of a Skill that does not exist. `known` are the Skills of the namespace.
    fn no_such_skill(&self, name: &str, known: &[Skill]) -> Error {
        let known: Vec<String> = known.iter().map(ResourceExt::name_any).collect();
        no_such_skill(&format!("the namespace {}", self.cluster.namespace), name, &known)
    }

    /// Reads the undecided Approvals that the status of a Job names.
    async fn open_approvals(&self, job: &Job) -> Result<Vec<Approval>, Error> {
        let api: Api<Approval> = Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let mut open = Vec::new();
        for name in state::approvals(job) {
            match api.get_opt(name).await {
                Ok(found) => open.extend(found.filter(|approval| {
                    Some(&approval.spec.job_uid) == job.uid().as_ref() && state::verdict(approval).is_none()
                })),
                Err(error) => {
                    let right = Right { group: GROUP, verb: "get", resource: "approvals", name: None };
                    return Err(self.cluster.refusal_error("reading Approvals", &error, vec![right]).await);
                }
            }
        }
        Ok(open)
    }

    /// Returns the events of a Job, which was read just before, after a cursor.
    async fn follow(&self, job: Job, after: Cursor) -> Result<BoxStream<'static, Result<Arc<JobEvent>, Error>>, Error> {
        subscription::authorize(&self.cluster, &job).await?;
        let place = self.shared.hub.enter(&self.cluster, &job);
        let (cluster, image) = (self.cluster.clone(), self.shared.reader_image.clone());
        Ok(subscription::stream(Subscription { cluster, job, place, image, seq: after.seq() }))
    }
}

impl Tenant for ClusterTenant {
    type Events = BoxStream<'static, Result<Arc<JobEvent>, Error>>;

    async fn check_following(&self) -> Result<(), Error> {
        subscription::authorize_start(&self.cluster).await
    }

    async fn start(&self, job: NewJob) -> Result<String, Error> {
        let job = new_job::build(job)?;
        // A repeated start finds its Job, even if the Skill has changed or is gone.
        if let Some(earlier) = self.earlier(&job).await? {
            return new_job::check_same(&earlier, &job).map(|()| earlier.name_any());
        }
        if let Some(skill) = self.skill_of(&job).await? {
            new_job::check_resources(&job, &skill)?;
        }
        let parameters =
            PostParams { field_manager: Some(self.cluster.field_manager.to_owned()), ..PostParams::default() };
        match self.jobs_api().create(&parameters, &job).await {
            Ok(created) => Ok(created.name_any()),
            Err(kube::Error::Api(status)) if status.code == 409 && job.metadata.name.is_some() => {
                let key = job.name_any();
                new_job::check_same(&self.job(&key).await?, &job)?;
                Ok(key)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                Err(Error::invalid(format!("the API server refuses the Job: {}", status.message)))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let message =
                    format!("no Job can be started in the namespace {}: {}", self.cluster.namespace, status.message);
                Err(Error::new(ErrorKind::NotFound, message))
            }
            Err(error) => {
                Err(self.cluster.refusal_error("starting a Job", &error, vec![Right::on_jobs("create")]).await)
            }
        }
    }

    async fn send(&self, job: &str, input: Input) -> Result<(), Error> {
        let found = self.job(job).await?;
        Box::pin(input::send(self.jobs_client(), found, input)).await
    }

    async fn jobs(&self) -> Result<Vec<JobSummary>, Error> {
        let mut jobs: Vec<JobSummary> = self.jobs_client().jobs(false).await?.iter().map(project::summary).collect();
        jobs.sort_by(|one, other| (&one.skill, &one.job).cmp(&(&other.skill, &other.job)));
        Ok(jobs)
    }

    async fn status(&self, job: &str) -> Result<JobStatus, Error> {
        Ok(project::status(&self.job(job).await?))
    }

    async fn timeline(&self, job: &str) -> Result<Vec<JobEvent>, Error> {
        let job = self.job(job).await?;
        let events = project::status(&job).status.log.events;
        if events == 0 {
            return Ok(Vec::new());
        }
        let count = usize::try_from(events).unwrap_or(usize::MAX);
        let stream = self.follow(job, Cursor::START).await?.map_ok(Arc::unwrap_or_clone);
        let collected = stream.take(count).collect::<Vec<Result<JobEvent, Error>>>();
        let late = |_| Error::new(ErrorKind::Unavailable, "the events of the Job did not arrive in time: try again");
        tokio::time::timeout(TIMELINE_TIMEOUT, collected).await.map_err(late)?.into_iter().collect()
    }

    async fn model_context(&self, job: &str) -> Result<ModelContext, Error> {
        let job = self.job(job).await?;
        subscription::authorize(&self.cluster, &job).await?;
        Box::pin(context::read(&self.cluster, &job, self.shared.reader_image.clone())).await
    }

    async fn open_requests(&self, job: &str) -> Result<OpenRequests, Error> {
        let job = self.job(job).await?;
        let approvals = self.open_approvals(&job).await?;
        let missing = rights::missing(&self.cluster, &job, &approvals).await;
        Ok(project::open_requests(&job, &approvals, missing))
    }

    async fn skills(&self) -> Result<Vec<SkillState>, Error> {
        let mut skills: Vec<SkillState> = self.list_skills().await?.iter().map(project::skill).collect();
        skills.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(skills)
    }

    async fn tools(&self, skill: &str) -> Result<Vec<SkillTool>, Error> {
        check_skill_name(skill)?;
        let skills = self.list_skills().await?;
        let found = skills.iter().find(|known| known.name_any() == skill);
        let found = found.ok_or_else(|| self.no_such_skill(skill, &skills))?;
        project::tools(found).ok_or_else(|| {
            let message = format!("the tools of the Skill {skill} are not verified yet: see its condition McpVerified");
            Error::new(ErrorKind::Unavailable, message)
        })
    }

    async fn events(&self, job: &str, after: Cursor) -> Result<Self::Events, Error> {
        self.follow(self.job(job).await?, after).await
    }

    /// Does nothing: the Jobs of a cluster go on.
    async fn close(&self) {}
}
