//! `bloomery`: what authors of Skills do at a terminal.

mod args;
mod bindings;
mod check;
mod events;
mod exit;
mod get;
mod import;
mod lint;
mod look;
mod migrate;
mod plain;
mod report;
mod rules;
mod run;
mod source;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use exit::{Exit, Trouble};
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Import(args) => of_io(import::run(&args)),
        Command::Lint(args) => of_io(lint::run(&args)),
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

fn of_io(done: io::Result<Exit>) -> Result<Exit, Trouble> {
    match done {
        // Whoever read our output has seen enough: `bloomery lint ... | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Good),
        other => other.map_err(|error| Trouble::failed(error.to_string())),
    }
}
