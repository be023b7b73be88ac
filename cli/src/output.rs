//! Output on stdout, and the formats for programs.

use crate::error::Error;
use serde::Serialize;
use std::io::{self, Write};

/// Prints to stdout. A closed pipe is not an error: `bloomery get ... | head`.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    write(&mut io::stdout().lock(), text).map(drop)
}

/// Writes a text. Returns false if the reader has closed the pipe.
///
/// # Errors
/// If stdout cannot be written.
pub fn write(out: &mut impl Write, text: &str) -> Result<bool, Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::failed(format!("stdout cannot be written: {error}"))),
    }
}

/// Formats a value as JSON, on several lines.
///
/// # Errors
/// If JSON cannot represent the value.
pub fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| Error::failed(error.to_string()))
}

/// Formats a value as YAML.
///
/// # Errors
/// If YAML cannot represent the value.
pub fn yaml(value: &impl Serialize) -> Result<String, Error> {
    serde_yaml::to_string(value).map_err(|error| Error::failed(error.to_string()))
}
