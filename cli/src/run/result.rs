//! Prints the results of Jobs.

use super::local_run::LocalRun;
use super::outcome_message::outcome_message;
use crate::error::Error;
use crate::exit::Exit;
use crate::summary;
use bloomery_crds::report::Projection;
use bloomery_engine::event::FullResult;
use bloomery_worker::driver;
use std::io::{self, Write};

/// Prints the answer of a Job to stdout, and its outcome and its usage to stderr. With `--json`, stdout has the answer in the events. With
/// `--quiet`, stderr has only the outcome of a Job that did not succeed. Returns the exit code.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(
    run: &LocalRun<'_>,
    exit: driver::Exit,
    projection: &Projection,
    result: Option<&FullResult>,
) -> Result<Exit, Error> {
    let LocalRun { args, job, screen } = *run;
    screen.close();
    let (directory, key) = (&job.directory, &job.document.part.run_key);
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
                let message = outcome_message(outcome, run);
                screen.print(&summary::outcome(outcome.code, &message, result));
            }
            if !args.quiet {
                screen.print(&summary::usage(&projection.usage));
            }
        }
        (driver::Exit::Finished, None) => screen.print("The Job has ended without an outcome."),
        (driver::Exit::Parked(reason), _) => screen.print(&summary::parked(reason, &args.memory, directory, key)),
        (driver::Exit::Superseded, _) => screen.print("Another process has taken over the Job. This process stops."),
    }
    let _ = io::stderr().flush();
    Ok(summary::exit_of(exit, projection.outcome.as_ref()))
}

/// Ignores the error of a closed pipe: `bloomery run ... | head`.
fn ignore_closed_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}
