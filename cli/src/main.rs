//! `bloomery`: what authors of Skills, and people whom their Jobs ask, do at a terminal.

mod approvals;
mod args;
mod bindings;
mod check;
mod cluster;
mod events;
mod exit;
mod get;
mod import;
mod lint;
mod look;
mod migrate;
mod output;
mod page;
mod plain;
mod report;
mod rules;
mod run;
mod source;
mod terminal;

use args::{Args, Command};
use bloomery_crds::v1alpha1::ApprovalVerdict;
use clap::{CommandFactory, FromArgMatches};
use exit::{Exit, Trouble};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match args().command {
        Command::Run(args) => run::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Import(args) => of_io(import::run(&args)),
        Command::Lint(args) => of_io(lint::run(&args)),
        Command::Approve(args) => approvals::decide(&args, ApprovalVerdict::Approve),
        Command::Deny(args) => approvals::decide(&args, ApprovalVerdict::Deny),
        Command::CanApprove(args) => approvals::can_approve(&args),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "bloomery", &mut io::stdout());
            Ok(Exit::Good)
        }
    };
    let exit = done.unwrap_or_else(|Trouble { exit, message }| {
        plain::say(&format!("bloomery: {message}"));
        exit
    });
    exit.into()
}

/// What the command line says. kubectl starts this binary as `kubectl-bloomery`.
fn args() -> Args {
    let started_as = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = started_as.is_some_and(|path| path.file_name().is_some_and(|name| name == "kubectl-bloomery"));
    let name = if is_plugin { "kubectl bloomery" } else { "bloomery" };
    let matches = Args::command().bin_name(name).get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn of_io(done: io::Result<Exit>) -> Result<Exit, Trouble> {
    match done {
        // Whoever read our output has seen enough: `bloomery lint ... | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Good),
        other => other.map_err(|error| Trouble::failed(error.to_string())),
    }
}
