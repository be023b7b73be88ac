//! Completion in shells: commands, options, files, and the names of objects in a cluster or a memory.
//!
//! A shell loads the script that `bloomery completion` prints. The script calls this program with the variable [`VARIABLE`] set
//! and the words of the command line after `--`. clap's engine computes the candidates.

mod kubectl;
mod names;

use crate::args::{Args, Invocation, Shell};
use crate::error::Error;
use crate::exit::Exit;
use crate::output;
use clap::{Arg, Command, CommandFactory, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, Elvish, Fish, Powershell, Shells, Zsh};
use kubectl::Kubectl;
use names::{NameKind, NameSource};
use std::ffi::{OsStr, OsString};
use std::{env, path};

/// The variable of the environment that requests completion. Its value is the name of the shell.
const VARIABLE: &str = "BLOOMERY_COMPLETE";

/// The supported shells, and kubectl.
const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Kubectl, &Powershell, &Zsh]);

/// Prints the candidates for completion if a shell has started this process to complete a command line. Returns whether that is so.
pub fn complete_for_shell(invocation: Invocation) -> bool {
    let words = env::args_os().skip_while(|word| word != "--").skip(1).collect::<Vec<_>>();
    let with_completers = || command_with_completers(&words, invocation);
    let engine = CompleteEnv::with_factory(with_completers).var(VARIABLE).shells(SHELLS);
    engine.try_complete(env::args_os(), env::current_dir().ok().as_deref()).unwrap_or_else(|error| error.exit())
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

/// Returns the command by which the script calls this program: the path under which it was started, or its name if the shell
/// found it in PATH.
fn own_path(program: &str) -> String {
    let started = env::args_os().next().filter(|started| started.to_string_lossy().contains('/'));
    let started = started.and_then(|started| path::absolute(started).ok());
    started.map_or_else(|| program.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Returns the definition of the command line, extended by completers for the arguments of the subcommand in `words`.
fn command_with_completers(words: &[OsString], invocation: Invocation) -> Command {
    let command = Args::command();
    let matches = Args::command().ignore_errors(true).try_get_matches_from(words).ok();
    let Some((name, matches)) = matches.as_ref().and_then(|matches| matches.subcommand()) else { return command };
    let source = NameSource::new(name, matches, invocation);
    // The engine offers options for an empty word too. They are hidden, because names and files are more likely.
    let is_option = words.last().is_some_and(|word| word.to_string_lossy().starts_with('-'));
    let hide_option = |arg: Arg| if arg.is_positional() || is_option { arg } else { arg.hide(true) };
    command.mut_subcommand(name, |subcommand| {
        subcommand.disable_help_flag(!is_option).mut_args(|arg| {
            match NameKind::for_argument(name, arg.get_id().as_str()) {
                Some(kind) => hide_option(arg).add(completer(kind, source.clone())),
                None => hide_option(arg),
            }
        })
    })
}

/// Returns the completer of an argument that takes names of a kind. An argument that also takes directories is completed with
/// directories if no name matches.
fn completer(kind: NameKind, source: NameSource) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let prefix = current.to_string_lossy();
        let names = source.names(kind).into_iter().filter(|name| name.starts_with(prefix.as_ref()));
        let candidates: Vec<_> = names.map(CompletionCandidate::new).collect();
        if candidates.is_empty() && kind == NameKind::JobsOrLogs {
            PathCompleter::dir().complete(current)
        } else {
            candidates
        }
    })
}
