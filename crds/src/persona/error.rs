//! The errors of a template.

use std::fmt;

/// The field that holds the template.
const FIELD: &str = "spec.role.persona";

/// An error at a position of a template, or about the whole template. It is displayed as a sentence that begins with the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(super) position: Option<Position>,
    message: String,
}

impl Error {
    pub(super) fn at(position: Position, message: String) -> Self {
        Self { position: Some(position), message }
    }

    pub(super) fn of_template(message: String) -> Self {
        Self { position: None, message }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{position}: {}", self.message),
            None => write!(f, "{FIELD}: {}", self.message),
        }
    }
}

/// A position in the template. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FIELD} (line {}, column {})", self.line, self.column)
    }
}
