//! Executes a prepared Job: reads its state, claims an epoch, drives the Job until it ends or parks, and prints the result.

use super::epoch::LocalEpoch;
use super::people::Terminal;
use super::prepare::{PreparedJob, child};
use super::screen::Screen;
use super::signals::Signals;
use super::skill::{LoadedSkill, invoked};
use super::stdout::CheckedWriter;
use super::steps::StepLines;
use super::{resources, result, server};
use crate::error::Error;
use crate::exit::Exit;
use crate::local::SKILL_FILE;
use crate::local::job_state::JobState;
use crate::local::skill_directory::SkillDirectory;
use crate::{events, summary};
use bloomery_crds::children::{self, ChildProgress, ChildRequest, ChildState, VisibleSkill};
use bloomery_crds::report::Projection;
use bloomery_crds::text::sentence;
use bloomery_engine::event::CallId;
use bloomery_journal::files::Disk;
use bloomery_worker::driver::{self, Children, Nobody, People};
use bloomery_worker::epoch::EpochEnd;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::{BackgroundWriter, Format, Printer};
use bloomery_worker::record::Record;
use bloomery_worker::stop::Stop;
use bloomery_worker::trace::{self, Trace};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Executes a Job until it ends or parks. If the Job has ended already, only prints its result again.
///
/// # Errors
/// If the Job cannot be executed, or its log or the result cannot be written.
pub fn execute(job: &PreparedJob<'_>, mut inputs: Inputs, screen: &Screen, trace: &Trace) -> Result<Exit, Error> {
    let state = JobState::read(&job.directory, &inputs)?;
    if state.conversation.outcome().is_some() {
        return show_again(job, screen, &inputs, &state);
    }
    if state.projection.log.events > 0 && job.args.resume.is_none() {
        return Err(unfinished_error(job));
    }
    check_files_and_program(job, &inputs)?;
    inputs.part.attempt = next_attempt(&state);
    let key = &inputs.part.run_key;
    open_trace(trace, job, key, screen);
    let failed = |error: io::Error| Error::failed(format!("the runtime cannot be started: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let stop = Stop::default();
    let last_line = format!("Stopped at once. {}", summary::resume_command(&job.args.memory, &job.directory, key));
    let signals = Signals::listen(&stop, screen, last_line)
        .map_err(|error| Error::failed(format!("signals cannot be handled: {error}")))?;
    let terminal = Terminal::open(screen);
    inputs.run.people = terminal.is_some();
    let people: &dyn People = terminal.as_ref().map_or(&Nobody, |terminal| terminal);
    let skills = vec![job.document.revision.skill.clone()];
    let execution = Execution { job, inputs: &inputs, people, screen, trace, stop: &stop, skills };
    let exit = runtime.block_on(Box::pin(execution.run(signals)));
    // A pending name lookup must not delay the exit. Dropping the handle of a program stops it.
    runtime.shutdown_background();
    exit
}

/// Returns the number of the next attempt. Each attempt claims one epoch of the log, so it has the number of the next epoch.
fn next_attempt(state: &JobState) -> u32 {
    u32::try_from(state.conversation.epoch()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Opens the trace of a Job. A trace that cannot be written does not fail the Job.
fn open_trace(trace: &Trace, job: &PreparedJob<'_>, key: &str, screen: &Screen) {
    if let Err(error) = trace.open(&job.directory.dir, key) {
        let dir = job.directory.dir.join(trace::DIR);
        screen.print(&format!("The trace in {} cannot be written: {error}", dir.display()));
    }
}

/// Prints the result of a Job that has ended. Writes its record if it is missing, for example because the
/// disk was full.
fn show_again(job: &PreparedJob<'_>, screen: &Screen, inputs: &Inputs, state: &JobState) -> Result<Exit, Error> {
    let (directory, key) = (&job.directory, &inputs.part.run_key);
    if !directory.record(key).exists() {
        let record = Record::new(inputs, &state.conversation, state.projection.clone());
        // An error is only reported, because the log contains everything that the record contains.
        if let Err(error) = record.write(&Disk, &directory.dir, key, &job.writer) {
            screen.print(&format!("The Job's record cannot be written: {error}"));
        }
    }
    if job.args.json {
        events::print(directory.log(key), Format::Json, false)?;
    }
    result::print(job, screen, driver::Exit::Finished, &state.projection, state.conversation.result())
}

/// Returns the error for a new Job with the key of a Job that has not ended.
fn unfinished_error(job: &PreparedJob<'_>) -> Error {
    let key = &job.document.part.run_key;
    let resume = summary::resume_command(&job.args.memory, &job.directory, key);
    Error::usage(format!("the Job {key} was started and has not ended: it may be running. {resume}"))
}

/// Checks the bound files and the server program again, because they may have changed since the start of the Job.
fn check_files_and_program(job: &PreparedJob<'_>, inputs: &Inputs) -> Result<(), Error> {
    let resources = &inputs.part.resources;
    resources::check_available(resources)?;
    // Links in the memory may have changed too.
    resources::check_outside_memory(resources, &job.args.memory)?;
    job.document.program.iter().try_for_each(server::check_program)
}

/// One execution of a Job, which is one epoch of its log.
#[derive(Debug)]
struct Execution<'a> {
    job: &'a PreparedJob<'a>,
    inputs: &'a Inputs,
    /// The person at the terminal, or nobody.
    people: &'a dyn People,
    screen: &'a Screen,
    trace: &'a Trace,
    /// Tells the driver to stop, after a signal.
    stop: &'a Stop,
    /// The names of the Skills of the Job and its parents.
    skills: Vec<String>,
}

impl Execution<'_> {
    /// Executes the epoch until it ends, or a second signal stops the process.
    async fn run(&self, signals: Signals) -> Result<Exit, Error> {
        tokio::select! {
            exit = self.run_epoch() => exit,
            () = signals.wait_for_second() => Ok(Exit::Interrupted),
            // Never completes.
            () = self.screen.run_status_line() => Ok(Exit::Error),
        }
    }

    /// Drives the Job, and prints its result.
    async fn run_epoch(&self) -> Result<Exit, Error> {
        let Self { job, inputs, screen, .. } = *self;
        let stdout = CheckedWriter::new(io::stdout());
        let failure = stdout.failure();
        let printer = if job.args.json { self.json_printer(stdout)? } else { self.text_printer() };
        let Some(EpochEnd { exit, projection, result, hold: _ }) = self.drive(printer).await? else {
            let projection = JobState::read(&job.directory, inputs)?.projection;
            return result::print(job, screen, driver::Exit::Superseded, &projection, None);
        };
        let exit = result::print(job, screen, exit, &projection, result.as_ref())?;
        failure.check().map(|()| exit)
    }

    /// Drives the Job. Returns `None` if another process has taken over the Job.
    async fn drive(&self, printer: Printer) -> Result<Option<EpochEnd>, Error> {
        let Self { job, inputs, people, screen, stop, .. } = *self;
        let PreparedJob { args, directory, skill, document, writer, .. } = job;
        let children = LocalChildren(self);
        let epoch = LocalEpoch {
            inputs,
            skill: skill.as_ref(),
            program: document.program.as_ref(),
            allows_scripts: args.allow_scripts,
            directory,
            writer,
            patience: Duration::from_secs(args.patience),
            people,
            children: &children,
            screen,
            stop,
        };
        let announce = || {
            let (key, name) = (&inputs.part.run_key, &directory.name);
            let log = directory.log(key);
            screen.print_progress(&format!("Job {key} of the Skill {name}, in {}", log.display()));
        };
        Box::pin(epoch.run(printer, announce)).await
    }

    /// Creates the printer of events as lines of steps: to the trace and the screen.
    fn text_printer(&self) -> Printer {
        let is_silent = self.job.args.quiet || self.job.args.json;
        let steps: Box<dyn Write + Send> =
            if is_silent { Box::new(io::sink()) } else { Box::new(StepLines::new(self.screen.clone())) };
        Printer::new(Format::Text, Box::new(self.inputs.redactor.writer(self.trace.tee(steps))))
    }

    /// Creates the printer of events as JSON: to stdout and the trace.
    fn json_printer(&self, stdout: CheckedWriter<io::Stdout>) -> Result<Printer, Error> {
        let stdout = BackgroundWriter::new(stdout)
            .map_err(|error| Error::failed(format!("stdout cannot be written: {error}")))?;
        Ok(Printer::new(Format::Json, Box::new(self.inputs.redactor.writer(self.trace.tee(stdout)))))
    }
}

/// The children of a Job, which run in this process. With `--json`, their events are in their traces only.
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
        let directory = SkillDirectory::new(&self.0.job.args.memory, &request.skill);
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
        self.0.screen.print(&format!(
            "The Job {} of the Skill {}: {error}",
            self.run_key(&request.call),
            request.skill
        ));
    }

    /// Runs a child until it ends or parks. Returns `None` if it has not ended.
    ///
    /// # Errors
    /// If the child cannot begin.
    async fn run(&self, request: &ChildRequest) -> Result<Option<ChildProgress>, Error> {
        let Execution { job, inputs, people, screen, stop, skills, .. } = self.0;
        if skills.contains(&request.skill) {
            return Err(Error::usage(format!("the Skill {} has invoked this one: do it yourself", request.skill)));
        }
        let (child, mut inputs_of_child) =
            child::prepare(job, &inputs.part, &self.file(), request, inputs.redactor.clone())?;
        inputs_of_child.run.people = inputs.run.people;
        let state = JobState::read(&child.directory, &inputs_of_child)?;
        if state.conversation.outcome().is_some() {
            return Ok(ended(state.projection));
        }
        check_files_and_program(&child, &inputs_of_child)?;
        inputs_of_child.part.attempt = next_attempt(&state);
        let trace = Trace::default();
        open_trace(&trace, &child, &inputs_of_child.part.run_key, screen);
        let skills = skills.iter().cloned().chain([request.skill.clone()]).collect();
        let execution =
            Execution { job: &child, inputs: &inputs_of_child, people: *people, screen, trace: &trace, stop, skills };
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
        let skills = invoked::visible(&job.document.revision.spec, &job.args.memory, &self.file());
        futures::future::ready(Ok(skills)).boxed_local()
    }

    fn end<'a>(&'a self, request: &'a ChildRequest) -> LocalBoxFuture<'a, Option<ChildState>> {
        async move {
            let has_begun = self.has_begun(request);
            let state = match self.run(request).await {
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
