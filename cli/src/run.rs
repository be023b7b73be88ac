//! `bloomery run`: runs a Skill on this machine, without a cluster. It uses the engine, the driver and the log of worker pods.
//! On a cluster, the operator prepares a Job; here, [`prepare`] does, and [`execute`] runs it.

mod api_keys;
mod checked_tools;
mod credential;
mod diagnostics;
mod epoch;
mod execute;
mod goal;
mod limits;
mod mcp_environment;
mod model;
mod model_file;
mod people;
mod prepare;
mod ram_key;
mod resources;
mod result;
mod screen;
mod scripts;
mod server;
mod short_secrets;
mod signals;
pub mod skill;
mod stdout;
mod steps;
mod templates;
pub mod validate;
mod vendor;

use crate::args::RunArgs;
use crate::error::Error;
use crate::exit::Exit;
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use screen::Screen;

/// Runs a Job, or resumes one.
///
/// # Errors
/// If the Job cannot be started or resumed, or its log cannot be written.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let screen = Screen::for_stderr(args.quiet);
    let (redactor, trace) = (Redactor::default(), Trace::default());
    diagnostics::start(&screen, &trace, &redactor);
    let prepared = match &args.resume {
        Some(key) => prepare::resume(args, key, redactor),
        None => prepare::new_job(args, redactor),
    };
    let exit = prepared.and_then(|(job, inputs)| execute::execute(&job, inputs, &screen, &trace));
    screen.close();
    exit
}
