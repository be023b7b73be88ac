//! Completion in shells, by clap's engine: commands, options and files, and the names in a cluster or a memory.
//!
//! The script of a shell calls this program with the variable [`VARIABLE`] set, and the words of the command line after `--`.

mod kubectl;
mod names;

use crate::args::{Args, Invocation, Shell};
use crate::error::Error;
use crate::exit::Exit;
use crate::output;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, Elvish, Fish, Powershell, Shells, Zsh};
use kubectl::Kubectl;
use names::{Kind, Source};
use std::ffi::{OsStr, OsString};
use std::{env, path};

/// The variable of the environment that asks for completion. Its value is the shell.
const VARIABLE: &str = "BLOOMERY_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Kubectl, &Powershell, &Zsh]);

/// Completes a command line if a shell asks for that, and returns whether it did.
pub fn answered_shell(invocation: Invocation) -> bool {
    let words = env::args_os().skip_while(|word| word != "--").skip(1).collect::<Vec<_>>();
    let complete = CompleteEnv::with_factory(|| command(&words, invocation)).var(VARIABLE).shells(SHELLS);
    complete.try_complete(env::args_os(), env::current_dir().ok().as_deref()).unwrap_or_else(|error| error.exit())
}

/// Prints the script that connects a shell with this program.
///
/// # Errors
/// If it cannot be printed.
pub fn print_script(shell: Shell, invocation: Invocation) -> Result<Exit, Error> {
    let name = shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let program = invocation.program();
    let mut script = Vec::new();
    if let Some(shell) = SHELLS.completer(&name) {
        let written = shell.write_registration(VARIABLE, program, program, &own_path(program), &mut script);
        written.map_err(|error| Error::failed(error.to_string()))?;
    }
    output::print(&String::from_utf8_lossy(&script)).map(|()| Exit::Success)
}

/// Returns how the script calls this program: by its name, or by the path that it was started with.
fn own_path(program: &str) -> String {
    let started = env::args_os().next().filter(|started| started.to_string_lossy().contains('/'));
    let started = started.and_then(|started| path::absolute(started).ok());
    started.map_or_else(|| program.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Returns the command line of this program, in which the arguments of the subcommand in `words` complete names.
fn command(words: &[OsString], invocation: Invocation) -> Command {
    let command = Args::command();
    let matches = Args::command().ignore_errors(true).try_get_matches_from(words).ok();
    let Some((name, matches)) = matches.as_ref().and_then(|matches| matches.subcommand()) else { return command };
    let source = Source::new(name, matches, invocation);
    // The engine offers the options for an empty word too. They are hidden there where there are names or files.
    let is_option = words.last().is_some_and(|word| word.to_string_lossy().starts_with('-'));
    command.mut_subcommand(name, |subcommand| {
        subcommand.disable_help_flag(!is_option).mut_args(|arg| match Kind::of_argument(name, arg.get_id().as_str()) {
            Some(kind) => {
                let hidden = !is_option && !arg.is_positional();
                arg.hide(hidden).add(completer(kind, source.clone()))
            }
            None if arg.is_positional() || is_option => arg,
            None => arg.hide(true),
        })
    })
}

/// Returns the completer of an argument that takes names of this kind; where there are none, it completes directories if the
/// argument takes these too.
fn completer(kind: Kind, source: Source) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let prefix = current.to_string_lossy();
        let names = source.names(kind).into_iter().filter(|name| name.starts_with(prefix.as_ref()));
        let candidates: Vec<_> = names.map(CompletionCandidate::new).collect();
        if candidates.is_empty() && kind == Kind::JobsOrLogs {
            PathCompleter::dir().complete(current)
        } else {
            candidates
        }
    })
}
