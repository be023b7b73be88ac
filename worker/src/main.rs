//! The program `bloomery-worker`, which runs one attempt of one Job in a pod, or probes the MCP server of a Skill.

use bloomery_redact::Redactor;
use bloomery_worker::attempt;
use bloomery_worker::ending;
use bloomery_worker::log_reader;
use bloomery_worker::migration::{self, Counts};
use bloomery_worker::printer::Format;
use bloomery_worker::probe;
use bloomery_worker::reclaim::{self, Left};
use bloomery_worker::settings::{Command, EventsArgs, MigrateArgs, ProbeArgs, ReclaimArgs, RunArgs, Settings};
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
        Command::Reclaim(args) => return reclaim_directory(&args),
        Command::Migrate(args) => return migrate(&args),
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

/// Removes the directory of a deleted Skill. The termination message says what is left of it, and is empty if nothing is.
fn reclaim_directory(args: &ReclaimArgs) -> ExitCode {
    let (message, code) = match reclaim::reclaim(&args.memory, &args.skill, &args.skill_uid) {
        Ok(Left::Nothing) => return ExitCode::SUCCESS,
        Ok(Left::EmptyDirectory) => {
            let skill = &args.skill;
            let why = "its parent cannot be written";
            (format!("the directory {skill} of the memory was emptied and stays, because {why}"), ExitCode::SUCCESS)
        }
        Err(error) => (error.to_string(), ExitCode::FAILURE),
    };
    eprintln!("bloomery-worker: {message}");
    ending::write_failure(&message, &args.termination_log);
    code
}

/// Migrates an older memory. Fails if a file stays.
fn migrate(args: &MigrateArgs) -> ExitCode {
    let MigrateArgs { memory, from, skill, apply } = args;
    let what = if *apply { "moved" } else { "to move; --apply moves them" };
    let (message, code) = match migration::migrate(memory, from, skill, *apply, &mut std::io::stdout().lock()) {
        Ok(None) => (format!("there is no directory {from:?}: nothing to migrate"), ExitCode::SUCCESS),
        Ok(Some(Counts { moved, stay })) => {
            let code = if stay == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            (format!("{moved} files {what}; {stay} stay"), code)
        }
        Err(error) => (error.to_string(), ExitCode::FAILURE),
    };
    eprintln!("bloomery-worker: {message}");
    code
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
    bloomery_http::install_tls_provider();
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
