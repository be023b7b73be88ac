//! `bloomery run`: runs a Skill on this machine, without a cluster. It uses the engine, the driver and the log of worker pods.
//! `bloomery-embed` prepares and drives the Job; these modules are its terminal.

mod diagnostics;
mod execute;
mod local_run;
mod outcome_message;
mod people;
mod result;
mod screen;
pub mod serve;
mod signals;
mod stdout;
mod steps;
mod swallowed;
pub mod validate;

use crate::args::RunArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_embed::ErrorKind;
use bloomery_embed::run::options::RunOptions;
use bloomery_embed::run::prepare;
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use local_run::LocalRun;
use screen::Screen;

/// Runs a Job, or resumes one.
///
/// # Errors
/// If the Job cannot be started or resumed, or its log cannot be written.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    swallowed::report("run", &args.mcp);
    let screen = Screen::for_stderr(args.quiet);
    let screen = if args.json { screen.without_events() } else { screen };
    let (redactor, trace) = (Redactor::default(), Trace::default());
    diagnostics::start(&screen, &trace, &redactor);
    let options = RunOptions::from(args);
    let prepared = match &args.resume {
        Some(key) => prepare::resume(&options, key, redactor),
        None => prepare::new_job(&options, redactor),
    };
    let exit = prepared.map_err(|error| preparation_error(args, error)).and_then(|(job, inputs)| {
        for note in job.skill_note.iter().filter(|_| !args.quiet).chain(&job.warnings) {
            text::inform(note);
        }
        execute::execute(&LocalRun { args, job: &job, screen: &screen }, inputs, &trace)
    });
    screen.close();
    exit
}

/// Returns the error of a Job that cannot be prepared. A Job with the same key and other parameters can be resumed.
fn preparation_error(args: &RunArgs, error: bloomery_embed::Error) -> Error {
    let existing = args.run_key.as_ref().filter(|_| error.kind == ErrorKind::Conflict);
    let resume = existing.map(|key| format!(" with --resume {key}")).unwrap_or_default();
    let error = Error::from(error);
    Error { message: error.message + &resume, ..error }
}
