//! `bloomery`: what authors of Skills do at a terminal.

mod args;
mod bindings;
mod check;
mod import;
mod lint;
mod look;
mod report;
mod rules;
mod source;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::io;
use std::process::ExitCode;

/// What a command comes to, as an exit code. Wrong usage is 2, and clap's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing is wrong.
    Good,
    /// Something is, and it was said.
    Bad,
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Import(args) => import::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "bloomery", &mut io::stdout());
            Ok(Verdict::Good)
        }
    };
    match done {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        // Whoever read our output has seen enough: `bloomery lint ... | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("bloomery: {error}");
            ExitCode::FAILURE
        }
    }
}
