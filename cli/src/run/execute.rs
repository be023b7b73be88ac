//! Executes a prepared Job at this terminal, and prints its result.

use super::local_run::LocalRun;
use super::people::Terminal;
use super::result;
use super::signals::Signals;
use super::stdout::CheckedWriter;
use crate::error::Error;
use crate::exit::Exit;
use crate::{events, summary};
use bloomery_embed::local::job_state::JobState;
use bloomery_embed::run::execute::{Execution, begin_attempt, tokio_runtime};
use bloomery_journal::files::Disk;
use bloomery_redact::Redactor;
use bloomery_worker::driver::{self, Nobody, People};
use bloomery_worker::epoch::EpochEnd;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::{BackgroundWriter, Format, Printer};
use bloomery_worker::record::Record;
use bloomery_worker::stop::Stop;
use bloomery_worker::trace::Trace;
use std::io;

/// Executes a Job until it ends or parks. If the Job has ended already, only prints its result again.
///
/// # Errors
/// If the Job cannot be executed, or its log or the result cannot be written.
pub fn execute(run: &LocalRun<'_>, mut inputs: Inputs, trace: &Trace) -> Result<Exit, Error> {
    let LocalRun { args, job, screen } = *run;
    let state = JobState::read(&job.directory, &inputs)?;
    if state.conversation.outcome().is_some() {
        return show_again(run, &inputs, &state);
    }
    if state.projection.log.events > 0 && args.resume.is_none() {
        return Err(unfinished_error(run));
    }
    begin_attempt(job, &mut inputs, &state)?;
    let runtime = tokio_runtime()?;
    let stop = Stop::default();
    let resume = summary::resume_command(&args.memory, &job.directory, &inputs.part.run_key);
    let signals = Signals::listen(&stop, screen, format!("Stopped at once. {resume}"))
        .map_err(|error| Error::failed(format!("signals cannot be handled: {error}")))?;
    let terminal = Terminal::open(screen);
    inputs.run.people = terminal.is_some();
    let people: &dyn People = terminal.as_ref().map_or(&Nobody, |terminal| terminal);
    let skills = vec![job.document.revision.skill.clone()];
    let execution = Execution { job, inputs: &inputs, people, view: screen, trace, stop: &stop, skills };
    execution.open_trace();
    let exit = runtime.block_on(Box::pin(run_to_end(run, &execution, signals)));
    // A pending name lookup must not delay the exit. Dropping the handle of a program stops it.
    runtime.shutdown_background();
    exit
}

/// Prints the result of a Job that has ended. Writes its record if it is missing, for example because the
/// disk was full.
fn show_again(run: &LocalRun<'_>, inputs: &Inputs, state: &JobState) -> Result<Exit, Error> {
    let (directory, key) = (&run.job.directory, &inputs.part.run_key);
    if !directory.record(key).exists() {
        let record = Record::new(inputs, &state.conversation, state.projection.clone());
        // An error is only reported, because the log contains everything that the record contains.
        if let Err(error) = record.write(&Disk, &directory.dir, key, &run.job.writer) {
            run.screen.print(&format!("The Job's record cannot be written: {error}"));
        }
    }
    if run.args.json {
        events::print(directory.log(key), Format::Json, false)?;
    }
    result::print(run, driver::Exit::Finished, &state.projection, state.conversation.result())
}

/// Returns the error for a new Job with the key of a Job that has not ended.
fn unfinished_error(run: &LocalRun<'_>) -> Error {
    let key = &run.job.document.part.run_key;
    let resume = summary::resume_command(&run.args.memory, &run.job.directory, key);
    Error::usage(format!("the Job {key} was started and has not ended: it may be running. {resume}"))
}

/// Executes the epoch until it ends, or a second signal stops the process.
async fn run_to_end(run: &LocalRun<'_>, execution: &Execution<'_>, signals: Signals) -> Result<Exit, Error> {
    tokio::select! {
        exit = run_epoch(run, execution) => exit,
        () = signals.wait_for_second() => Ok(Exit::Interrupted),
        // Never completes.
        () = run.screen.run_status_line() => Ok(Exit::Error),
    }
}

/// Drives the Job, and prints its result.
async fn run_epoch(run: &LocalRun<'_>, execution: &Execution<'_>) -> Result<Exit, Error> {
    let stdout = CheckedWriter::new(io::stdout());
    let failure = stdout.failure();
    let printer = if run.args.json {
        json_printer(stdout, &execution.inputs.redactor, execution.trace)?
    } else {
        execution.text_printer()
    };
    let Some(EpochEnd { exit, projection, result, hold: _, scripts: _ }) = execution.drive(printer).await? else {
        let projection = JobState::read(&run.job.directory, execution.inputs)?.projection;
        return result::print(run, driver::Exit::Superseded, &projection, None);
    };
    let exit = result::print(run, exit, &projection, result.as_ref())?;
    failure.check().map(|()| exit)
}

/// Creates the printer of events as JSON: to stdout and the trace.
fn json_printer(stdout: CheckedWriter<io::Stdout>, redactor: &Redactor, trace: &Trace) -> Result<Printer, Error> {
    let stdout =
        BackgroundWriter::new(stdout).map_err(|error| Error::failed(format!("stdout cannot be written: {error}")))?;
    Ok(Printer::new(Format::Json, Box::new(redactor.writer(trace.tee(stdout)))))
}
