//! Errors of commands, with their exit codes.

use crate::exit::Exit;
use crate::option_names::with_options_of_commands;
use bloomery_embed::ErrorKind;
use bloomery_embed::findings::FileFinding;
use bloomery_skills::Finding;
use std::io;

/// The prefix of error messages and notes.
pub const PREFIX: &str = "bloomery: ";

/// An error of a command.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The exit code of the process.
    pub exit: Exit,
    /// The message: what failed, why, and what to do.
    pub message: String,
    /// The findings about a file that cannot be used. They are printed before the message.
    pub findings: Vec<FileFinding>,
}

impl Error {
    /// Creates an error.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: Vec::new() }
    }

    /// Creates the error for arguments or files that cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates the error for a command that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Error, message)
    }

    /// Creates the error for a command that came too late.
    pub fn too_late(message: impl Into<String>) -> Self {
        Self::new(Exit::TooLate, message)
    }

    /// Converts the error of an operation on a cluster. There, a conflict is no fault of the command line.
    pub fn on_cluster(error: bloomery_embed::Error) -> Self {
        let is_conflict = error.kind == ErrorKind::Conflict;
        let error = Self::from(error);
        if is_conflict { Self { exit: Exit::Error, ..error } } else { error }
    }

    /// Joins errors into one error, with one line for each. The first error determines the exit code.
    pub fn join(errors: Vec<Self>) -> Self {
        let exit = errors.first().map_or(Exit::Usage, |first| first.exit);
        let (mut messages, mut findings) = (Vec::new(), Vec::new());
        for error in errors {
            messages.push(error.message);
            findings.extend(error.findings);
        }
        Self { exit, message: messages.join(&format!("\n{PREFIX}")), findings }
    }
}

impl From<bloomery_embed::Error> for Error {
    fn from(error: bloomery_embed::Error) -> Self {
        let bloomery_embed::Error { kind, message, findings } = error;
        let exit = match kind {
            ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => Exit::Usage,
            ErrorKind::Unauthenticated | ErrorKind::Forbidden | ErrorKind::Unavailable | ErrorKind::Failed => {
                Exit::Error
            }
            ErrorKind::TooLate => Exit::TooLate,
        };
        let named = |found: FileFinding| {
            let message = with_options_of_commands(&found.finding.message);
            FileFinding { finding: Finding { message, ..found.finding }, ..found }
        };
        let findings = findings.into_iter().map(named).collect();
        let message = with_options_of_commands(&message);
        // The lines about missing rights continue the message.
        let message = if kind == ErrorKind::Forbidden { message } else { with_prefixes(&message) };
        Self { exit, message, findings }
    }
}

/// Adds the prefix of the program to each line but the first, whose prefix is printed with it. A line that begins with a blank continues
/// the line before.
fn with_prefixes(message: &str) -> String {
    let mut lines = message.lines();
    let mut prefixed = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let prefix = if line.starts_with(' ') { "" } else { PREFIX };
        prefixed.extend(["\n", prefix, line]);
    }
    prefixed
}

/// Converts an IO error into the error of a command. A closed pipe is a success.
///
/// # Errors
/// Any other IO error.
pub fn from_io_result(result: io::Result<Exit>) -> Result<Exit, Error> {
    match result {
        // The reader closed the pipe: `bloomery lint ... | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        other => other.map_err(|error| Error::failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_library_is_a_line_with_the_prefix() {
        let errors = vec![bloomery_embed::Error::invalid("one\n  more"), bloomery_embed::Error::failed("two")];
        let error = Error::from(bloomery_embed::Error::join(errors));
        assert_eq!(error, Error::usage("one\n  more\nbloomery: two"));
        assert_eq!(Error::from(bloomery_embed::Error::failed("x")), Error::failed("x"));
    }

    #[test]
    fn a_refusal_of_the_cluster_is_no_fault_of_the_command_line() {
        let error = |kind| bloomery_embed::Error::new(kind, "refused\nMissing: a right");
        assert_eq!(Error::from(error(ErrorKind::Forbidden)), Error::failed("refused\nMissing: a right"));
        assert_eq!(Error::on_cluster(error(ErrorKind::Conflict)).exit, Exit::Error);
        assert_eq!(Error::on_cluster(error(ErrorKind::TooLate)).exit, Exit::TooLate);
    }
}
