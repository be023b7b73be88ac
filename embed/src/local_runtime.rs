//! The runtime of this machine: memories, and the engine in this process.

mod effect;
mod feed;
mod inbox;
mod jobs;
mod polls;
mod running;
mod sending;
mod shared;
mod skills;
mod statement;
mod subscription;
mod thread;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};
use crate::event::JobEvent;
use crate::input::Input;
use crate::job::{JobStatus, JobSummary, ModelContext, NewJob};
use crate::local::DEFAULT_SKILL;
use crate::local::key::key_fault;
use crate::local::memory;
use crate::requests::OpenRequests;
use crate::run::options::RunOptions;
use crate::run::prepare::again;
use crate::run::{limits, skill};
use crate::runtime::{Runtime, Tenant};
use crate::skill::{SkillState, SkillTool, check_skill_name, no_such_skill};
use crate::text;
use futures::stream::BoxStream;
use shared::Shared;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thread::Begin;

/// The interval at which a tenant that is being closed looks for running Jobs.
const CLOSE_INTERVAL: Duration = Duration::from_millis(20);

/// The runtime of this machine. Each tenant is a memory, and no Job can read the memory of another tenant. All methods need a runtime of
/// tokio.
#[derive(Debug)]
pub struct LocalRuntime {
    tenants: Mutex<BTreeMap<String, Arc<Shared>>>,
    /// The directory of further memories, and the options of their Jobs.
    memories: Option<(PathBuf, RunOptions)>,
}

/// A tenant of this machine, opened for a caller.
#[derive(Debug, Clone)]
pub struct LocalTenant {
    shared: Arc<Shared>,
    /// The name of the caller in logs.
    caller: String,
}

impl LocalRuntime {
    /// Creates the runtime of some tenants. The options of a tenant name its memory, and how its Jobs reach models and servers. Their
    /// parameters of one Job, such as the goal, are not used.
    ///
    /// # Errors
    /// If two tenants have the same memory.
    pub fn new(tenants: BTreeMap<String, RunOptions>) -> Result<Self, Error> {
        let mut memories = BTreeMap::new();
        for (name, options) in &tenants {
            // A memory that does not exist yet has only its name.
            let memory = options.memory.canonicalize().unwrap_or_else(|_| options.memory.clone());
            if let Some(other) = memories.insert(memory, name) {
                let memory = options.memory.display();
                return Err(Error::invalid(format!(
                    "the tenants {other} and {name} have the same memory {memory}: give each its own"
                )));
            }
        }
        let memories: Vec<_> = tenants.iter().map(|(name, options)| (name.clone(), options.memory.clone())).collect();
        let opened = tenants.into_iter().map(|(name, mut options)| {
            let others = memories.iter().filter(|(other, _)| *other != name);
            options.other_memories.extend(others.map(|(_, memory)| memory.clone()));
            (name, Shared::new(options))
        });
        Ok(Self::with(opened.collect(), None))
    }

    /// Creates the runtime of a directory of memories. Each directory in it is the memory of the tenant of its name, also if it is created
    /// later. The name of a tenant must be one that the key of a Job can have. `options` are those of all Jobs. Their memory and their
    /// parameters of one Job are not used.
    pub fn for_directory(memories: impl Into<PathBuf>, options: RunOptions) -> Self {
        Self::with(BTreeMap::new(), Some((memories.into(), options)))
    }

    fn with(tenants: BTreeMap<String, Arc<Shared>>, memories: Option<(PathBuf, RunOptions)>) -> Self {
        bloomery_http::install_tls_provider();
        Self { tenants: Mutex::new(tenants), memories }
    }

    /// Returns a tenant. Opens its memory if it is in the directory of memories.
    fn tenant(&self, name: &str) -> Option<Arc<Shared>> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = tenants.get(name) {
            return Some(Arc::clone(shared));
        }
        let (memories, options) = self.memories.as_ref()?;
        let memory = memories.join(name);
        // A path or a link could lead to the memory of another tenant.
        if key_fault(name).is_some() || !memory.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return None;
        }
        let mut options = RunOptions { memory, ..options.clone() };
        options.other_memories.push(memories.clone());
        let shared = Shared::new(options);
        tenants.insert(name.to_owned(), Arc::clone(&shared));
        Some(shared)
    }
}

impl Runtime for LocalRuntime {
    /// The name of the person or program, which logs contain.
    type Caller = String;
    type Tenant = LocalTenant;

    async fn open(&self, tenant: &str, caller: String) -> Result<LocalTenant, Error> {
        let shared =
            self.tenant(tenant).ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no tenant of that name"))?;
        Ok(LocalTenant { shared, caller })
    }
}

impl LocalTenant {
    /// Continues the Jobs of the memory that have not ended and that no process of this machine drives, until too many Jobs run. Call it once
    /// when a host starts, so that its Jobs survive a restart. Returns the keys of the Jobs that go on. Those that cannot go on are in the
    /// diagnostics, and go on when they receive input.
    ///
    /// # Errors
    /// If the memory cannot be read.
    pub async fn resume_jobs(&self) -> Result<Vec<String>, Error> {
        let mut resumed = Vec::new();
        let mut interrupted = self.shared.blocking(|options| jobs::interrupted(&options.memory)).await?;
        // A Job that has just been started may have no mark yet.
        interrupted.retain(|summary| !self.shared.running.is_running(&summary.job));
        for JobSummary { job, skill, .. } in interrupted {
            match self.shared.resume(Some(skill.clone()), Begin::Continue(job.clone())).await {
                Ok(()) => resumed.push(job),
                Err(error) => tracing::warn!("the Job {job} of the Skill {skill} does not go on: {error}"),
            }
        }
        Ok(resumed)
    }
}

impl Tenant for LocalTenant {
    type Events = BoxStream<'static, Result<Arc<JobEvent>, Error>>;

    async fn start(&self, job: NewJob) -> Result<String, Error> {
        if let Some(key) = &job.continues {
            self.shared.wait_for_record(key).await;
        }
        let options = self.shared.blocking(move |options| options_of(options, job)).await?;
        thread::start(Arc::clone(&self.shared.running), options, Begin::New).await
    }

    async fn send(&self, job: &str, input: Input) -> Result<(), Error> {
        sending::send(&self.shared, job, self.caller.clone(), input).await
    }

    async fn jobs(&self) -> Result<Vec<JobSummary>, Error> {
        self.shared.blocking(|options| jobs::list(&options.memory)).await
    }

    async fn status(&self, job: &str) -> Result<JobStatus, Error> {
        self.shared.with_job(job, |job| job.status()).await
    }

    async fn timeline(&self, job: &str) -> Result<Vec<JobEvent>, Error> {
        self.shared
            .with_job(job, |job| {
                let (mut log, mut events) = (job.log(), Vec::new());
                while let Some(segment) = log.next_segment()? {
                    events.extend(segment);
                }
                Ok(events)
            })
            .await
    }

    async fn model_context(&self, job: &str) -> Result<ModelContext, Error> {
        self.shared.with_job(job, |job| Ok(ModelContext::new(&job.state()?.conversation))).await
    }

    async fn open_requests(&self, job: &str) -> Result<OpenRequests, Error> {
        self.shared.with_job(job, |job| Ok(OpenRequests::new(&job.state()?.conversation))).await
    }

    async fn skills(&self) -> Result<Vec<SkillState>, Error> {
        self.shared.blocking(|options| Ok(skills::states(&options.memory))).await
    }

    async fn tools(&self, skill: &str) -> Result<Vec<SkillTool>, Error> {
        let skill = skill.to_owned();
        let tools = move |options: &RunOptions| {
            check_skill_name(&skill)?;
            check_exists(options, &skill)?;
            skills::tools(options, &skill)
        };
        self.shared.blocking(tools).await
    }

    async fn events(&self, job: &str, after: Cursor) -> Result<Self::Events, Error> {
        let (past, log) = self.shared.with_job(job, |job| Ok((job.log(), job.log()))).await?;
        Ok(subscription::subscribe(self.shared.running.feed(job, log), past, after))
    }

    async fn close(&self) {
        self.shared.running.close();
        while !self.shared.running.is_idle() {
            tokio::time::sleep(CLOSE_INTERVAL).await;
        }
    }
}

/// Returns the options of a new Job.
///
/// # Errors
/// If the key or the name of the Skill is invalid, there is no such Skill, or another Skill has a Job of the key.
fn options_of(tenant: &RunOptions, job: NewJob) -> Result<RunOptions, Error> {
    let NewJob { goal, skill, resources, limits, key, continues } = job;
    // A path would name a file outside of the memory.
    let skill = skill.unwrap_or_else(|| DEFAULT_SKILL.to_owned());
    check_skill_name(&skill)?;
    for key in key.iter().chain(&continues) {
        if let Some(fault) = key_fault(key) {
            return Err(Error::invalid(format!("a key of a Job {fault}")));
        }
    }
    if let Some(key) = &key
        && memory::skill_directories(&tenant.memory)
            .unwrap_or_default()
            .iter()
            .any(|directory| directory.name != skill && directory.log(key).is_dir())
    {
        let message = format!("another Skill has a Job of the key {key}: use another `options.run_key`");
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    // A repeated start finds its Job, even if the Skill is gone.
    check_exists(tenant, &skill).or_else(|error| match &key {
        Some(key) if again::is_stored(tenant, &skill, key)? => Ok(()),
        _ => Err(error),
    })?;
    Ok(RunOptions {
        goal: Some(goal),
        skill: Some(skill),
        resources: resources.into_iter().collect(),
        project_path: None,
        limits: limits.as_ref().map(limits::as_text).transpose()?.unwrap_or_default(),
        run_key: key,
        continues,
        ..tenant.clone()
    })
}

/// Checks that a tenant has a Skill, or may create it.
///
/// # Errors
/// If there is no such Skill.
fn check_exists(tenant: &RunOptions, name: &str) -> Result<(), Error> {
    if tenant.bootstrap || skill::exists(&tenant.memory, name) {
        return Ok(());
    }
    let known: Vec<String> = skill::known_names(&tenant.memory).into_iter().collect();
    Err(no_such_skill(&format!("the memory {}", text::directory(&tenant.memory)), name, &known))
}
