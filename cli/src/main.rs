//! `bloomery`: what authors of Skills, and people whom their Jobs ask, do at a terminal.

mod approvals;
mod args;
mod choice;
mod cluster;
mod complete;
mod events;
mod exit;
mod get;
mod import;
mod jobs;
mod lint;
mod look;
mod migrate;
mod output;
mod page;
mod plain;
mod report;
mod run;
mod source;
mod table;
mod terminal;

use args::{Args, Command, Place, Started};
use bloomery_crds::v1alpha1::ApprovalVerdict;
use clap::{CommandFactory, FromArgMatches};
use exit::{Exit, Trouble};
use jobs::Way;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (Args { command }, started) = args();
    let done = match command {
        Command::Run(args) => run::run(&args),
        Command::Events(args) => match args.place.place(started, args.whole || args.image.is_some()) {
            Place::Memory(memory) => events::run(&args, memory),
            Place::Cluster(cluster) => jobs::events(&args, &Way::new(started, cluster)),
        },
        Command::Get(args) => match args.place.place(started, args.all_namespaces) {
            Place::Memory(memory) => get::run(&args, memory),
            Place::Cluster(cluster) => jobs::get(&args, &Way::new(started, cluster)),
        },
        Command::Migrate(args) => migrate::run(&args),
        Command::Import(args) => of_io(import::run(&args)),
        Command::Lint(args) => of_io(lint::run(&args)),
        Command::Approve(args) => approvals::decide(&args, ApprovalVerdict::Approve),
        Command::Deny(args) => approvals::decide(&args, ApprovalVerdict::Deny),
        Command::CanApprove(args) => approvals::can_approve(&args),
        Command::Reply(args) => jobs::reply(&args, &Way::new(started, &args.cluster)),
        Command::Cancel(args) => jobs::cancel(&args, &Way::new(started, &args.cluster)),
        Command::Wait(args) => jobs::wait(&args, &Way::new(started, &args.cluster)),
        Command::Tree(args) => jobs::tree(&args, &Way::new(started, &args.cluster)),
        Command::Completion { shell } => complete::script(shell),
        Command::Complete { words } => complete::words(&words, started),
    };
    let exit = done.unwrap_or_else(|Trouble { exit, message }| {
        plain::note(&message);
        exit
    });
    exit.into()
}

/// What the command line says. kubectl starts this binary as `kubectl-bloomery`.
fn args() -> (Args, Started) {
    let started_as = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = started_as.is_some_and(|path| path.file_name().is_some_and(|name| name == "kubectl-bloomery"));
    let started = if is_plugin { Started::Plugin } else { Started::Bloomery };
    let matches = Args::command().bin_name(started.name()).get_matches();
    (Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()), started)
}

fn of_io(done: io::Result<Exit>) -> Result<Exit, Trouble> {
    match done {
        // Whoever read our output has seen enough: `bloomery lint ... | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Good),
        other => other.map_err(|error| Trouble::failed(error.to_string())),
    }
}
