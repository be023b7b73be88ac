//! The error of an operation.

use crate::findings::FileFinding;

/// The kind of an error, which tells a host how to answer its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request, or a file that it names, cannot be used. Nothing was changed.
    Invalid,
    /// There is no such Job, Skill or tenant.
    NotFound,
    /// The state of the object does not allow the operation: the Job has ended, a question is answered, or a key has a Job with another
    /// goal.
    Conflict,
    /// The object does not accept the operation any more: the Job or the question is closed, or the object is deleted.
    TooLate,
    /// The credentials of the caller are not accepted, or not any more. With new ones, the same request may succeed.
    Unauthenticated,
    /// The caller lacks a right, which the message names.
    Forbidden,
    /// The runtime cannot answer now. The same request may succeed later.
    Unavailable,
    /// The operation failed.
    Failed,
}

/// The error of an operation. The message says what failed, on which object, why, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The message, for people. If there are several errors, each has a line.
    pub message: String,
    /// The findings about a file that cannot be used.
    pub findings: Vec<FileFinding>,
}

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), findings: Vec::new() }
    }

    /// Creates the error of a request or a file that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates the error of an operation that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Creates the error of an operation that came too late.
    pub fn too_late(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLate, message)
    }

    /// Joins errors into one error, with one line for each. The first error determines the kind.
    pub fn join(errors: Vec<Self>) -> Self {
        let kind = errors.first().map_or(ErrorKind::Invalid, |first| first.kind);
        let (mut messages, mut findings) = (Vec::new(), Vec::new());
        for error in errors {
            messages.push(error.message);
            findings.extend(error.findings);
        }
        Self { kind, message: messages.join("\n"), findings }
    }
}

/// Collects errors, so that all of them can be reported at once.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_message_only() {
        let error = Error::new(ErrorKind::NotFound, "there is no Job k-1");
        assert_eq!((error.kind, error.to_string().as_str()), (ErrorKind::NotFound, "there is no Job k-1"));
        assert_eq!(Error::invalid("x").kind, ErrorKind::Invalid);
        assert_eq!(Error::failed("x").kind, ErrorKind::Failed);
    }

    #[test]
    fn collected_errors_are_one_error_with_a_line_for_each() {
        let mut errors = Errors::default();
        assert_eq!(errors.collect(Ok(1)), Some(1));
        assert!(errors.is_empty());
        assert_eq!(errors.collect::<u8>(Err(Error::failed("one"))), None);
        errors.add(Error::invalid("two"));
        let error = errors.into_result(()).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Failed, "one\ntwo"));
    }
}
