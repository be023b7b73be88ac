//! The program `bloomery-worker`, which runs one attempt of one Job in a pod, or probes the MCP server of a Skill.

use bloomery_redact::Redactor;
use bloomery_worker::attempt;
use bloomery_worker::log_reader;
use bloomery_worker::printer::Format;
use bloomery_worker::probe;
use bloomery_worker::settings::{Command, EventsArgs, ProbeArgs, RunArgs, Settings};
use bloomery_worker::trace::Trace;
use clap::Parser;
use std::process::ExitCode;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    let args = match Settings::parse().command {
        Command::Run(args) => args,
        Command::Events(args) => return print_events(&args),
        Command::Probe(args) => return exit_code(probe_server(&args)),
    };
    let (trace, redactor) = (Trace::default(), Redactor::default());
    log_to_stderr(args.log_format, trace.clone(), redactor.clone());
    exit_code(run(&args, &trace, &redactor))
}

fn exit_code(result: Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Probes the MCP server of a Skill.
fn probe_server(args: &ProbeArgs) -> Result<(), Box<dyn std::error::Error>> {
    let redactor = Redactor::default();
    log_to_stderr(args.log_format, Trace::default(), redactor.clone());
    let runtime = runtime()?;
    runtime.block_on(probe::run(args, &redactor))?;
    runtime.shutdown_background();
    Ok(())
}

/// Prints the events of a stored log.
fn print_events(args: &EventsArgs) -> ExitCode {
    match log_reader::print(&args.dir, args.log_format, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bloomery-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs an attempt. One thread is enough, because a worker waits for servers nearly all the time, and a node may have many workers.
fn run(args: &RunArgs, trace: &Trace, redactor: &Redactor) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = runtime()?;
    runtime.block_on(attempt::run(args, trace, redactor))?;
    // Does not wait for a DNS lookup that is still running.
    runtime.shutdown_background();
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    // An error means that a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build()
}

/// Writes diagnostics to stderr and to the trace, without secrets. The conversation goes to stdout.
fn log_to_stderr(format: Format, trace: Trace, redactor: Redactor) {
    let writer = move || redactor.writer(trace.tee(std::io::stderr()));
    let lines = fmt::layer().with_writer(writer).with_target(false).with_ansi(false);
    // rmcp logs each refused connection as an error. The worker logs the errors that matter.
    let levels = Targets::new().with_default(LevelFilter::INFO).with_target("rmcp", LevelFilter::OFF);
    let log = tracing_subscriber::registry().with(levels);
    match format {
        Format::Text => log.with(lines.compact()).init(),
        Format::Json => log.with(lines.json()).init(),
    }
}
