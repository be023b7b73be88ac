//! What goes to stdout, and values as programs read them.

use crate::error::Error;
use serde::Serialize;
use std::io::{self, Write};

/// Prints to stdout. That nobody reads to the end is no fault: `bloomery get ... | head`.
///
/// # Errors
/// If it cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    write(&mut io::stdout().lock(), text).map(drop)
}

/// Writes, and says whether somebody still reads.
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

/// As JSON, over several lines.
///
/// # Errors
/// What of it cannot be said in JSON.
pub fn json(what: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(what).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// As YAML.
///
/// # Errors
/// What of it cannot be said in YAML.
pub fn yaml(what: &impl Serialize) -> Result<String, String> {
    serde_yaml::to_string(what).map_err(|error| error.to_string())
}
