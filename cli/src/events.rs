//! `bloomery events`: prints the log of a Job. It only reads.

use crate::args::EventsArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::local::memory;
use crate::local::memory_error::log_error;
use crate::output;
use bloomery_worker::log_reader::{self, LogReader, PrintedSegment};
use bloomery_worker::printer::Format;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval at which a followed log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints the events of a log; with `--follow`, until the Job has ended or is parked.
///
/// # Errors
/// If there is no log, or it is broken. The events before the break are printed.
pub fn run(args: &EventsArgs, memory: &Path) -> Result<Exit, Error> {
    let dir = log_dir(args, memory)?;
    print(dir, if args.json { Format::Json } else { Format::Text }, args.follow)
}

/// Prints the events of the log in a directory; with `follow`, until the Job has ended or is parked.
///
/// # Errors
/// If there is no log, or it is broken. The events before the break are printed.
pub fn print(dir: PathBuf, format: Format, follow: bool) -> Result<Exit, Error> {
    let mut reader = open(dir, format, follow)?;
    let mut out = io::stdout().lock();
    loop {
        let PrintedSegment { lines, read } = reader.next_segment();
        let has_reader = output::write(&mut out, &lines)?;
        if !has_reader {
            return Ok(Exit::Success);
        }
        let had_segment = read.map_err(|error| log_error(&error))?;
        if had_segment {
            continue;
        }
        if reader.has_ended_or_parked() || !follow {
            return Ok(Exit::Success);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Opens the log in a directory; with `wait`, waits for its first segment.
fn open(dir: PathBuf, format: Format, wait: bool) -> Result<LogReader, Error> {
    loop {
        match LogReader::open(dir.clone(), format) {
            Ok(Some(reader)) => return Ok(reader),
            Ok(None) if wait => std::thread::sleep(POLL_INTERVAL),
            Ok(None) => return Err(Error::usage(log_reader::Error::Empty(dir).to_string())),
            // The command line names a directory that is missing or cannot be read.
            Err(log_reader::Error::Unreadable { path, source }) if path == dir => {
                return Err(Error::usage(log_reader::Error::Unreadable { path, source }.to_string()));
            }
            Err(error) => return Err(Error::failed(error.to_string())),
        }
    }
}

/// Returns the directory of the log. The command line gives either this directory, or the key of a Job in the memory.
fn log_dir(args: &EventsArgs, memory: &Path) -> Result<PathBuf, Error> {
    let named = Path::new(&args.log);
    if args.log.contains('/') || named.is_dir() {
        return if named.is_dir() {
            Ok(named.to_owned())
        } else {
            Err(Error::usage(format!("there is no directory {}", named.display())))
        };
    }
    let key = &args.log;
    let skill_directory = memory::find_log(memory, args.skill.as_deref(), key)?;
    Ok(skill_directory.log(key))
}
