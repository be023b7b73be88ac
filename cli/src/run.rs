//! `bloomery run`: runs a Skill on this machine, without a cluster. The engine, the driver and the log are those of a worker
//! pod; this module prepares what an operator provides on a cluster.

mod api_keys;
mod credential;
mod execute;
mod limits;
mod mcp_environment;
mod memory_key;
mod model;
mod model_file;
mod people;
mod prepare;
mod resources;
mod screen;
mod server;
mod short_secrets;
mod signals;
mod skill;
mod stdout;
mod templates;
mod vendor;

use crate::args::RunArgs;
use crate::error::Error;
use crate::exit::Exit;
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use screen::Screen;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs a Job, or resumes one.
///
/// # Errors
/// If it cannot be started or resumed.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let screen = Screen::for_stderr();
    let (redactor, trace) = (Redactor::default(), Trace::default());
    diagnostics(&screen, &trace, &redactor);
    // Fails if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match &args.resume {
        Some(key) => prepare::resume(args, key, redactor),
        None => prepare::new_job(args, redactor),
    };
    let exit = done.and_then(|(job, inputs)| execute::execute(&job, inputs, &screen, &trace));
    screen.close();
    exit
}

/// Sends the worker's diagnostics to the screen and the trace.
fn diagnostics(screen: &Screen, trace: &Trace, redactor: &Redactor) {
    let (screen, trace, redactor) = (screen.clone(), trace.clone(), redactor.clone());
    let out = move || redactor.writer(trace.tee(screen.clone()));
    let lines = fmt::layer().with_writer(out).without_time().with_target(false).with_ansi(false).compact();
    // rmcp logs each refused connection as an error; the commands report those that matter.
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF);
    tracing_subscriber::registry().with(levels).with(lines).init();
}
