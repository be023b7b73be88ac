//! Output on stdout, and the formats for programs.

use crate::error::Error;
use serde::Serialize;
use std::io::{self, Write};

/// Prints to stdout. A closed pipe is not an error: `bloomery get ... | head`.
///
/// # Errors
/// If it cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    write(&mut io::stdout().lock(), text).map(drop)
}

/// Writes a text, and returns whether the reader still listens.
///
/// # Errors
/// If it cannot be written.
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
/// If the value has no form in JSON.
pub fn json(what: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(what).map(|text| text + "\n").map_err(|error| Error::failed(error.to_string()))
}

/// Formats a value as YAML.
///
/// # Errors
/// If the value has no form in YAML.
pub fn yaml(what: &impl Serialize) -> Result<String, Error> {
    serde_yaml::to_string(what).map_err(|error| Error::failed(error.to_string()))
}
