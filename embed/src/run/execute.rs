//! Drives a prepared Job until it ends or parks. Its children run in the same process.

use super::epoch::LocalEpoch;
use super::prepare::{PreparedJob, child};
use super::skill::{LoadedSkill, invoked};
use super::view::RunView;
use super::{resources, server};
use crate::error::Error;
use crate::local::SKILL_FILE;
use crate::local::drive_mark::DriveMark;
use crate::local::job_state::JobState;
use crate::local::skill_directory::SkillDirectory;
use bloomery_crds::children::{self, ChildProgress, ChildRequest, ChildState, VisibleSkill};
use bloomery_crds::report::Projection;
use bloomery_crds::text::sentence;
use bloomery_engine::event::CallId;
use bloomery_worker::driver::{Children, People};
use bloomery_worker::epoch::EpochEnd;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::{Format, Printer};
use bloomery_worker::stop::Stop;
use bloomery_worker::trace::{self, Trace};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// Creates a runtime of tokio for this thread.
///
/// # Errors
/// If the system lacks resources.
pub fn tokio_runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::failed(format!("the runtime cannot be started: {error}")))
}

/// Makes the inputs those of the next attempt of a Job. Checks the bound files and the server program again, because they may have changed
/// since the start of the Job.
///
/// # Errors
/// If one of them cannot be used.
pub fn begin_attempt(job: &PreparedJob<'_>, inputs: &mut Inputs, state: &JobState) -> Result<(), Error> {
    let resources = &inputs.part.resources;
    resources::check_available(resources)?;
    // Links in the memory may have changed too.
    resources::check_places(resources, job.options)?;
    job.document.program.iter().try_for_each(server::check_program)?;
    // Each attempt claims one epoch of the log, so it has the number of the next epoch.
    inputs.part.attempt = u32::try_from(state.conversation.epoch()).unwrap_or(u32::MAX).saturating_add(1);
    Ok(())
}

/// One execution of a Job, which is one epoch of its log.
#[derive(Debug)]
pub struct Execution<'a> {
    /// The Job.
    pub job: &'a PreparedJob<'a>,
    /// The inputs of the attempt.
    pub inputs: &'a Inputs,
    /// The people who can be asked.
    pub people: &'a dyn People,
    /// The view of the Job.
    pub view: &'a dyn RunView,
    /// The trace of the Job.
    pub trace: &'a Trace,
    /// The requests to stop.
    pub stop: &'a Stop,
    /// The names of the Skills of the Job and its parents.
    pub skills: Vec<String>,
}

impl Execution<'_> {
    /// Opens the trace of the Job. A trace that cannot be written does not fail the Job.
    pub fn open_trace(&self) {
        let directory = &self.job.directory;
        if let Err(error) = self.trace.open(&directory.dir, &self.inputs.part.run_key) {
            let dir = directory.dir.join(trace::DIR);
            self.view.print(&format!("The trace in {} cannot be written: {error}", dir.display()));
        }
    }

    /// Drives the Job until it ends or parks. Returns `None` if another process has taken over the Job.
    ///
    /// # Errors
    /// If the model or the tools cannot be used, or the log cannot be written.
    pub async fn drive(&self, printer: Printer) -> Result<Option<EpochEnd>, Error> {
        let Self { job, inputs, people, view, stop, .. } = *self;
        let PreparedJob { options, directory, skill, document, writer, .. } = job;
        let children = LocalChildren(self);
        let epoch = LocalEpoch {
            inputs,
            skill: skill.as_ref(),
            program: document.program.as_ref(),
            allows_scripts: options.allow_scripts,
            directory,
            other_memories: &options.other_memories,
            writer,
            patience: options.patience,
            people,
            children: &children,
            view,
            stop,
        };
        // After a takeover, the other process has the mark until it stops.
        let _mark = DriveMark::set(&directory.log(&inputs.part.run_key));
        let announce = || {
            let (key, name) = (&inputs.part.run_key, &directory.name);
            let log = directory.log(key);
            view.print_progress(&format!("Job {key} of the Skill {name}, in {}", log.display()));
        };
        Box::pin(epoch.run(printer, announce)).await
    }

    /// Creates the printer of events as lines for people: to the trace and the view.
    pub fn text_printer(&self) -> Printer {
        Printer::new(Format::Text, Box::new(self.inputs.redactor.writer(self.trace.tee(self.view.events()))))
    }
}

/// The children of a Job, which run in this process. Their events are in their traces, and in the view.
#[derive(Debug)]
struct LocalChildren<'a>(&'a Execution<'a>);

impl LocalChildren<'_> {
    /// Returns the file of the Job's Skill, which may have other Skills.
    fn file(&self) -> PathBuf {
        let job = self.0.job;
        let named = job.skill.as_ref().map(LoadedSkill::file).filter(|file| file.is_file());
        named.map_or_else(|| job.directory.dir.join(SKILL_FILE), Path::to_owned)
    }

    /// Returns whether an earlier attempt of the Job has started a child. If this cannot be read, it counts as started.
    fn has_begun(&self, request: &ChildRequest) -> bool {
        let directory = SkillDirectory::new(&self.0.job.options.memory, &request.skill);
        directory.log(&self.run_key(&request.call)).try_exists().unwrap_or(true)
    }

    /// Returns the run key of the child of a call.
    fn run_key(&self, call: &str) -> String {
        let Execution { job, inputs, .. } = self.0;
        children::run_key(&job.document.revision.skill, &inputs.part.run_key, call)
    }

    /// Prints why a child that has begun cannot continue now. It is not refused, because it may have had effects. The next attempt of the
    /// parent continues it.
    fn print_error(&self, request: &ChildRequest, error: &Error) {
        self.0.view.print(&format!("The Job {} of the Skill {}: {error}", self.run_key(&request.call), request.skill));
    }

    /// Runs a child until it ends or parks. Returns `None` if it has not ended.
    ///
    /// # Errors
    /// If the child cannot begin.
    async fn run(&self, request: &ChildRequest) -> Result<Option<ChildProgress>, Error> {
        let Execution { job, inputs, people, view, stop, skills, .. } = self.0;
        if skills.contains(&request.skill) {
            return Err(Error::invalid(format!("the Skill {} has invoked this one: do it yourself", request.skill)));
        }
        let (child, mut inputs_of_child) =
            child::prepare(job, &inputs.part, &self.file(), request, inputs.redactor.clone())?;
        inputs_of_child.run.people = inputs.run.people;
        let state = JobState::read(&child.directory, &inputs_of_child)?;
        if state.conversation.outcome().is_some() {
            return Ok(ended(state.projection));
        }
        begin_attempt(&child, &mut inputs_of_child, &state)?;
        let trace = Trace::default();
        let skills = skills.iter().cloned().chain([request.skill.clone()]).collect();
        let (people, view) = (*people, *view);
        let execution = Execution { job: &child, inputs: &inputs_of_child, people, view, trace: &trace, stop, skills };
        execution.open_trace();
        match Box::pin(execution.drive(execution.text_printer())).await {
            Ok(end) => Ok(end.and_then(|end| ended(end.projection))),
            Err(error) => {
                self.print_error(request, &error);
                Ok(None)
            }
        }
    }
}

impl Children for LocalChildren<'_> {
    fn name(&self, call: &CallId) -> String {
        // The run key names a Job of a memory.
        self.run_key(&call.to_string())
    }

    fn skills(&self) -> LocalBoxFuture<'_, Result<Vec<VisibleSkill>, String>> {
        let Execution { job, .. } = self.0;
        let skills = invoked::visible(&job.document.revision.spec, &job.options.memory, &self.file());
        futures::future::ready(Ok(skills)).boxed_local()
    }

    fn end<'a>(&'a self, request: &'a ChildRequest) -> LocalBoxFuture<'a, Option<ChildState>> {
        async move {
            let has_begun = self.has_begun(request);
            let state = match Box::pin(self.run(request)).await {
                Ok(state) => state?,
                Err(error) if has_begun => {
                    self.print_error(request, &error);
                    return None;
                }
                Err(error) => ChildProgress::Refused { reason: sentence(&error.message) },
            };
            Some(ChildState { job: self.run_key(&request.call), call: request.call.clone(), state })
        }
        .boxed_local()
    }

    fn run_here(&self) -> bool {
        true
    }
}

/// Returns the end of a child; none if it has not ended.
fn ended(projection: Projection) -> Option<ChildProgress> {
    Some(ChildProgress::ended(projection.outcome?, projection.result, projection.usage))
}
