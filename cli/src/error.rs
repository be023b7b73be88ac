//! Errors of commands, with their exit codes.

use crate::exit::Exit;
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
}

impl Error {
    /// Creates the error for arguments or files that cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Creates the error for a command that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Error, message: message.into() }
    }

    /// Creates the error for a command that came too late.
    pub fn too_late(message: impl Into<String>) -> Self {
        Self { exit: Exit::TooLate, message: message.into() }
    }

    /// Joins errors into one error, with one line for each. The first error determines the exit code.
    pub fn join(errors: Vec<Self>) -> Self {
        let exit = errors.first().map_or(Exit::Usage, |first| first.exit);
        let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
        Self { exit, message: messages.join(&format!("\n{PREFIX}")) }
    }
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

/// Collects the errors of a command, so that it can report all of them at once.
#[derive(Debug, Default)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// Returns the value of a result. If the result is an error, adds the error and returns `None`.
    pub fn collect<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Adds an error.
    pub fn add(&mut self, error: Error) {
        self.0.push(error);
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value if there are no errors. Otherwise, joins all errors into one.
    ///
    /// # Errors
    /// The joined errors.
    pub fn into_result<T>(self, value: T) -> Result<T, Error> {
        if self.is_empty() { Ok(value) } else { Err(self.into_error()) }
    }

    /// Joins all errors into one.
    pub fn into_error(self) -> Error {
        Error::join(self.0)
    }
}
