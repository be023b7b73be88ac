//! Completion of `kubectl bloomery`. kubectl runs the program `kubectl_complete-bloomery` and parses its output in the format of
//! cobra, the library of kubectl's command line.

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::EnvCompleter;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// cobra's directive that the shell does not complete files by itself.
const NO_FILES: u8 = 4;

/// cobra's directives [`NO_FILES`] and "no space after the word". Without a space, a person can continue a directory.
const NO_FILES_NO_SPACE: u8 = NO_FILES | 2;

/// The completer for kubectl, which passes the candidates on to the shell.
pub(super) struct Kubectl;

impl EnvCompleter for Kubectl {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(&self, var: &str, _: &str, _: &str, _: &str, buf: &mut dyn Write) -> io::Result<()> {
        write!(
            buf,
            "#!/bin/sh\n\
             # Completes `kubectl bloomery`. Save it as kubectl_complete-bloomery in a directory of PATH:\n\
             #   bloomery completion kubectl > ~/.local/bin/kubectl_complete-bloomery\n\
             #   chmod +x ~/.local/bin/kubectl_complete-bloomery\n\
             export {var}=kubectl\n\
             exec kubectl-bloomery -- kubectl-bloomery \"$@\"\n"
        )
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let last = words.len().saturating_sub(1);
        let candidates = complete(command, words, last, current_dir)?;
        for candidate in &candidates {
            write!(buf, "{}", candidate.get_value().to_string_lossy())?;
            if let Some(help) = candidate.get_help() {
                write!(buf, "\t{}", help.to_string().lines().next().unwrap_or_default())?;
            }
            writeln!(buf)?;
        }
        let has_directory = candidates.iter().any(|candidate| candidate.get_value().to_string_lossy().ends_with('/'));
        // The last line of cobra's format is the directive.
        writeln!(buf, ":{}", if has_directory { NO_FILES_NO_SPACE } else { NO_FILES })
    }
}
