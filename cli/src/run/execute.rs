//! Executes a prepared Job: reads its state, claims an epoch, drives the Job until it ends or parks, and prints the result.

use super::checked_tools::CheckedTools;
use super::people::Terminal;
use super::prepare::PreparedJob;
use super::screen::Screen;
use super::scripts::LocalScripts;
use super::signals::Signals;
use super::stdout::CheckedWriter;
use super::steps::StepLines;
use super::{model, resources, server, tools};
use crate::args::{ModelArgs, RunArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::local::job_state::JobState;
use crate::local::memory;
use crate::local::memory_error::log_error;
use crate::{events, summary};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::Projection;
use bloomery_engine::event::FullResult;
use bloomery_http::address::AddressPolicy;
use bloomery_journal::files::Disk;
use bloomery_models::{Clients, RetryPolicy};
use bloomery_worker::driver::{Environment, NoChildren, Nobody, Patience, People};
use bloomery_worker::epoch::{Epoch, EpochEnd};
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::{BackgroundWriter, Format, Printer};
use bloomery_worker::record::Record;
use bloomery_worker::shared_cache::SharedCache;
use bloomery_worker::stop::Stop;
use bloomery_worker::tools::CoreTools;
use bloomery_worker::trace::{self, Trace};
use bloomery_worker::{driver, focus};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The timeout for closing the sessions with the MCP server and the scripts.
const MCP_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

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
    // Each attempt claims one epoch of the log, so the next attempt has the number of the next epoch.
    inputs.part.attempt = u32::try_from(state.conversation.epoch()).unwrap_or(u32::MAX).saturating_add(1);
    let key = &inputs.part.run_key;
    if let Err(error) = trace.open(&job.directory.dir, key) {
        let dir = job.directory.dir.join(trace::DIR);
        screen.print(&format!("The trace in {} cannot be written: {error}", dir.display()));
    }
    let failed = |error: io::Error| Error::failed(format!("the runtime cannot be started: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let stop = Stop::default();
    let last_line = format!("Stopped at once. {}", summary::resume_command(&job.args.memory, &job.directory, key));
    let signals = Signals::listen(&stop, screen, last_line)
        .map_err(|error| Error::failed(format!("signals cannot be handled: {error}")))?;
    let terminal = Terminal::open(screen);
    inputs.run.people = terminal.is_some();
    let people: &dyn People = terminal.as_ref().map_or(&Nobody, |terminal| terminal);
    let execution = Execution { job, inputs: &inputs, people, screen, trace, stop: &stop };
    let exit = runtime.block_on(Box::pin(execution.run(signals)));
    // A pending name lookup must not delay the exit. Dropping the handle of a program stops it.
    runtime.shutdown_background();
    exit
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
    print_result(job, screen, driver::Exit::Finished, &state.projection, state.conversation.result())
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
struct Execution<'a> {
    job: &'a PreparedJob<'a>,
    inputs: &'a Inputs,
    /// The person at the terminal, or nobody.
    people: &'a dyn People,
    screen: &'a Screen,
    trace: &'a Trace,
    /// Tells the driver to stop, after a signal.
    stop: &'a Stop,
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

    /// Connects the model and the tools, claims the epoch, drives the Job, and prints its result.
    async fn run_epoch(&self) -> Result<Exit, Error> {
        let Self { job, inputs, people, screen, stop, .. } = *self;
        let unusable = |error: bloomery_http::Error| Error::usage(error.to_string());
        // The memory was checked before. From now on, an error of the log is not a mistake on the command line.
        let failed = |error: bloomery_journal::Error| Error::failed(log_error(&error).message);
        let (part, redactor) = (&inputs.part, &inputs.redactor);
        let patience = Duration::from_secs(job.args.patience);
        let models = Clients::new(
            &part.models,
            &part.job.uid,
            &RetryPolicy::new(patience),
            AddressPolicy::for_local_machine(),
            redactor,
        );
        let models = models.map_err(unusable)?.with_observer(&screen.observer());
        let scripts = LocalScripts::write(job.args, &job.document.revision.spec)?;
        let tools = tools::connect(job, scripts.as_ref(), redactor, screen)?;
        let tools = CheckedTools { tools, skill: job.skill.as_ref(), screen };
        let (dir, writer) = (job.directory.dir.as_path(), job.writer.as_str());
        // File tools must not reach the memory.
        let hidden = memory::all_directories(&job.args.memory);
        let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).chain([dir]).collect();
        let core =
            CoreTools::for_job(inputs, dir, writer, focus::DEFAULT_BUDGET_BYTES, AddressPolicy::for_local_machine())
                .hiding(&hidden)
                .map_err(|error| failed(bloomery_journal::Error::from_io("hide", dir, error)))?;
        let cache = SharedCache::new(dir, writer);
        let environment = Environment {
            memory: dir,
            writer,
            model: &models,
            tools: &tools,
            core: &core,
            cache: &cache,
            people,
            children: &NoChildren,
            stop,
            patience: Patience::new(patience, patience),
        };
        let epoch = match Epoch::claim(Disk, inputs, environment).await {
            Err(bloomery_journal::Error::Superseded { .. }) => {
                let projection = JobState::read(&job.directory, inputs)?.projection;
                return print_result(job, screen, driver::Exit::Superseded, &projection, None);
            }
            claimed => claimed.map_err(failed)?,
        };
        let log = job.directory.log(&part.run_key);
        screen.print_progress(&format!(
            "Job {} of the Skill {}, in {}",
            part.run_key,
            job.directory.name,
            log.display()
        ));
        let stdout = CheckedWriter::new(io::stdout());
        let failure = stdout.failure();
        let end = epoch.drive(screen, self.printer(stdout)?).await;
        // Gives programs time to end by themselves, even after an error of the epoch.
        let _ = tokio::time::timeout(MCP_CLOSE_TIMEOUT, tools.tools.close()).await;
        let EpochEnd { exit, projection, result, hold: _ } = end.map_err(failed)?;
        let exit = print_result(job, screen, exit, &projection, result.as_ref())?;
        failure.check().map(|()| exit)
    }

    /// Creates the printer of events: to stdout as JSON, or to the trace and, as lines of steps, to the screen. JSON also goes to the
    /// trace.
    fn printer(&self, stdout: CheckedWriter<io::Stdout>) -> Result<Printer, Error> {
        let Self { inputs: Inputs { redactor, .. }, screen, trace, .. } = *self;
        if !self.job.args.json {
            let steps: Box<dyn Write + Send> =
                if self.job.args.quiet { Box::new(io::sink()) } else { Box::new(StepLines::new(screen.clone())) };
            return Ok(Printer::new(Format::Text, Box::new(redactor.writer(trace.tee(steps)))));
        }
        let stdout = BackgroundWriter::new(stdout)
            .map_err(|error| Error::failed(format!("stdout cannot be written: {error}")))?;
        Ok(Printer::new(Format::Json, Box::new(redactor.writer(trace.tee(stdout)))))
    }
}

/// Prints the answer of a Job to stdout, and its outcome to stderr. With `--json`, stdout has the answer in the events.
/// Returns the exit code.
fn print_result(
    job: &PreparedJob<'_>,
    screen: &Screen,
    exit: driver::Exit,
    projection: &Projection,
    result: Option<&FullResult>,
) -> Result<Exit, Error> {
    screen.close();
    let PreparedJob { args, directory, document, .. } = job;
    let key = &document.part.run_key;
    match (exit, &projection.outcome) {
        (driver::Exit::Finished, Some(outcome)) => {
            if let Some(result) = result.filter(|_| !args.json) {
                let unwritten = |error| Error::failed(format!("stdout cannot be written: {error}"));
                summary::print_answer(&mut io::stdout().lock(), result)
                    .or_else(ignore_closed_pipe)
                    .map_err(unwritten)?;
            }
            let exit = summary::exit_of(exit, Some(outcome));
            if !args.quiet || exit != Exit::Success {
                let hint = unavailable_hint(outcome.code, args);
                screen.print(&summary::outcome(outcome, result, hint, &projection.usage));
            }
        }
        (driver::Exit::Finished, None) => screen.print("The Job has ended without an outcome."),
        (driver::Exit::Parked(reason), _) => screen.print(&summary::parked(reason, &args.memory, directory, key)),
        (driver::Exit::Superseded, _) => screen.print("Another process has taken over the Job. This process stops."),
    }
    let _ = io::stderr().flush();
    Ok(summary::exit_of(exit, projection.outcome.as_ref()))
}

/// Returns the option that named a server that did not answer.
fn unavailable_hint(code: OutcomeCode, args: &RunArgs) -> Option<&'static str> {
    let ModelArgs { model, model_url, .. } = &args.model;
    match code {
        OutcomeCode::ModelUnavailable if model_url.is_some() => {
            Some("The address of the model is that of --model-url.")
        }
        OutcomeCode::ModelUnavailable if model.as_deref().is_some_and(model::is_file) => {
            Some("The address of the model is in the file of --model.")
        }
        OutcomeCode::McpUnavailable if args.mcp.url.is_some() => {
            Some("The address of the MCP server is that of --mcp.")
        }
        OutcomeCode::McpUnavailable if !args.mcp.command.is_empty() => {
            Some("The MCP server is the program of --mcp-command.")
        }
        OutcomeCode::McpUnavailable => {
            Some("The address of the MCP server is mcp_server of the Skill; --mcp replaces it.")
        }
        _ => None,
    }
}

/// Ignores the error of a closed pipe: `bloomery run ... | head`.
fn ignore_closed_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}
