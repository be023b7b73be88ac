//! `bloomery run`: a Skill on this machine, without a cluster. The engine, the driver and the log are those of a worker
//! pod; what an operator would hand over is put together here.

mod api_keys;
mod begin;
mod credential;
pub mod document;
pub mod ending;
mod handed;
mod key;
mod limits;
pub mod memory;
mod model;
mod model_file;
mod orphans;
mod people;
mod printed;
mod resources;
mod screen;
mod server;
mod signals;
pub mod skill;
pub mod standing;
mod templates;
mod unkept;
mod vendor;
mod work;

use crate::args::RunArgs;
use crate::exit::{Exit, Trouble};
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use document::Document;
use memory::{Slag, told};
use model::Models;
use screen::Screen;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The Skill of a Job that names none (seed 000).
pub const DEFAULT_SKILL: &str = "sw-dev-agent";

/// A Job that can be worked on.
#[derive(Debug)]
struct Job<'a> {
    args: &'a RunArgs,
    slag: Slag,
    document: Document,
    /// The keys out of the environment are there as long as it is.
    _models: Models,
    /// The name for what this process writes.
    writer: String,
}

/// Runs a Job, or goes on with one.
///
/// # Errors
/// If it cannot begin or cannot go on.
pub fn run(args: &RunArgs) -> Result<Exit, Trouble> {
    let screen = Screen::of_stderr();
    let (redactor, trace) = (Redactor::default(), Trace::default());
    diagnostics(&screen, &trace, &redactor);
    // It fails where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match &args.resume {
        Some(key) => begin::again(args, key, redactor),
        None => begin::anew(args, redactor),
    };
    let exit = done.and_then(|(job, inputs)| work::work(&job, inputs, &screen, &trace));
    screen.close();
    exit
}

/// What the worker has to say of its surroundings.
fn diagnostics(screen: &Screen, trace: &Trace, redactor: &Redactor) {
    let (screen, trace, redactor) = (screen.clone(), trace.clone(), redactor.clone());
    let out = move || redactor.writer(trace.tee(screen.clone()));
    let lines = fmt::layer().with_writer(out).without_time().with_target(false).with_ansi(false).compact();
    // rmcp calls every connection that is refused an error; what matters of it we say ourselves.
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF);
    tracing_subscriber::registry().with(levels).with(lines).init();
}
