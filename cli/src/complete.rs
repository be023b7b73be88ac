//! Completion in shells: of commands and options, and of the names that a cluster or a memory has.
//!
//! Scripts ask this binary (`__complete`), which knows both. It answers as cobra's programs do, so that kubectl understands it.

mod names;
mod point;

use crate::args::{Args, Invocation, Shell};
use crate::exit::{Exit, Trouble};
use crate::output;
use clap::CommandFactory;
use clap_complete::generate;
use point::{Candidates, Point};
use std::fmt::Write;

/// What cobra's scripts do with files where nothing was found: complete them, or not.
const FILES: &str = ":0";
const NO_FILES: &str = ":4";

/// Prints the script of a shell.
///
/// # Errors
/// If it cannot be printed.
pub fn script(shell: Shell) -> Result<Exit, Trouble> {
    let text = match shell {
        Shell::Bash => include_str!("complete/bloomery.bash").to_owned(),
        Shell::Fish => include_str!("complete/bloomery.fish").to_owned(),
        Shell::Kubectl => include_str!("complete/kubectl_complete-bloomery").to_owned(),
        Shell::Zsh => include_str!("complete/bloomery.zsh").to_owned(),
        Shell::Elvish => generated(clap_complete::Shell::Elvish),
        Shell::Powershell => generated(clap_complete::Shell::PowerShell),
    };
    output::print(&text).map(|()| Exit::Good)
}

fn generated(shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    generate(shell, &mut Args::command(), "bloomery", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Prints what completes the last of some words. What cannot be found out is left out: nobody reads why.
///
/// # Errors
/// If it cannot be printed.
pub fn words(words: &[String], invocation: Invocation) -> Result<Exit, Trouble> {
    let Point { candidates, prefix, cluster, memory } = point::at(&Args::command(), words);
    let (found, is_for_files) = match candidates {
        Candidates::Words(words) => (words, false),
        Candidates::Files => (Vec::new(), true),
        Candidates::Names(kind) => {
            let found = names::find(kind, &cluster, memory.as_deref(), invocation);
            (found.into_iter().map(|name| (name, String::new())).collect(), kind.may_be_a_file())
        }
    };
    let mut text = String::new();
    for (word, about) in found.iter().filter(|(word, _)| word.starts_with(&prefix)) {
        let about = if about.is_empty() { String::new() } else { format!("\t{about}") };
        // Nothing fails that writes to a string.
        let _ = writeln!(text, "{word}{about}");
    }
    let _ = writeln!(text, "{}", if is_for_files { FILES } else { NO_FILES });
    output::print(&text).map(|()| Exit::Good)
}
