//! `bloomery run`: runs a Skill on this machine, without a cluster. It uses the engine, the driver and the log of worker pods.
//! On a cluster, the operator prepares a Job; here, [`prepare`] does, and [`execute`] runs it.

mod api_keys;
mod checked_tools;
mod credential;
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
mod tools;
mod vendor;

use crate::args::RunArgs;
use crate::error::Error;
use crate::exit::Exit;
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use screen::Screen;
use std::io;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs a Job, or resumes one.
///
/// # Errors
/// If the Job cannot be started or resumed, or its log cannot be written.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let screen = Screen::for_stderr(args.quiet);
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

/// The modules that report failed tries. The screen shows what the Job waits for, and the outcome has the last failure.
const RETRIES: [&str; 2] = ["bloomery_models", "bloomery_worker::driver::wait"];

/// Sends the worker's diagnostics to the screen and the trace. Those about retries go only to the trace.
fn print_diagnostics(screen: &Screen, trace: &Trace, redactor: &Redactor) {
    // rmcp logs each refused connection as an error. The MCP client itself reports the connections that matter.
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF);
    let without_retries = levels.clone().with_targets(RETRIES.map(|module| (module, LevelFilter::OFF)));
    let lines = || fmt::layer().without_time().with_target(false).with_ansi(false).compact();
    let (screen, trace, redactor) = (screen.clone(), trace.clone(), redactor.clone());
    let secrets = redactor.clone();
    let to_trace = lines().with_writer(move || redactor.writer(trace.tee(io::sink())));
    let to_screen = lines().with_writer(move || secrets.writer(screen.clone()));
    let layers = vec![to_trace.with_filter(levels).boxed(), to_screen.with_filter(without_retries).boxed()];
    tracing_subscriber::registry().with(layers).init();
}
