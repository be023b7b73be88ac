//! `bloomery run`: runs a Skill on this machine, without a cluster. It uses the engine, the driver and the log of worker pods.
//! On a cluster, the operator prepares a Job; here, [`prepare`] does, and [`execute`] runs it.

mod api_keys;
mod credential;
mod execute;
mod limits;
mod mcp_environment;
mod model;
mod model_file;
mod people;
mod prepare;
mod ram_key;
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
/// If the Job cannot be started or resumed, or its log cannot be written.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let screen = Screen::for_stderr();
    let (redactor, trace) = (Redactor::default(), Trace::default());
    print_diagnostics(&screen, &trace, &redactor);
    // This fails if a provider of cryptography is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let prepared = match &args.resume {
        Some(key) => prepare::resume(args, key, redactor),
        None => prepare::new_job(args, redactor),
    };
    let exit = prepared.and_then(|(job, inputs)| execute::execute(&job, inputs, &screen, &trace));
    screen.close();
    exit
}

/// Sends the worker's diagnostics to the screen and the trace.
fn print_diagnostics(screen: &Screen, trace: &Trace, redactor: &Redactor) {
    let (screen, trace, redactor) = (screen.clone(), trace.clone(), redactor.clone());
    let out = move || redactor.writer(trace.tee(screen.clone()));
    let lines = fmt::layer().with_writer(out).without_time().with_target(false).with_ansi(false).compact();
    // rmcp logs each refused connection as an error. The MCP client itself reports the connections that matter.
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF);
    tracing_subscriber::registry().with(levels).with(lines).init();
}
