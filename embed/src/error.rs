//! The error of an operation.

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
    /// The message, for people. It may have several lines.
    pub message: String,
}

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Creates the error of a request or a file that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates the error of an operation that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
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
}
