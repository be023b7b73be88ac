//! `bloomery events`: the log of a Job, as people or programs read it. Nothing is written.

use crate::args::EventsArgs;
use crate::exit::{Exit, Trouble};
use crate::output;
use crate::run::memory::{holder, told};
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, source_of};
use bloomery_worker::log::files::Disk;
use bloomery_worker::log::{Segments, segment};
use bloomery_worker::printer::{Format, Printer};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a log that is followed is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// The longest first line that is looked at for whose log it is.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Prints the events of a log; with `--follow` until the Job has ended.
///
/// # Errors
/// If there is no log, or it is broken: what stands before the break is printed.
pub fn run(args: &EventsArgs) -> Result<Exit, Trouble> {
    let dir = directory(args)?;
    print(dir, if args.json { Format::Json } else { Format::Text }, args.follow)
}

/// Prints the events of the log in a directory; one that is followed, until the Job has ended.
///
/// # Errors
/// If there is no log, or it is broken: what stands before the break is printed.
pub fn print(dir: PathBuf, format: Format, follow: bool) -> Result<Exit, Trouble> {
    let mut printer = Printer::new(format, Box::new(io::stdout()));
    let Some(mut chain) = begun(&dir, follow)? else {
        return Err(Trouble::usage(format!("there are no events in {}", dir.display())));
    };
    let segments = Segments::new(Disk, dir);
    let mut out = io::stdout().lock();
    loop {
        let mut lines = String::new();
        let mut is_over = false;
        let read = segments.read_lines(&mut chain, |line, entry| {
            is_over |= matches!(entry.event, Event::Finished { .. });
            lines.push_str(&printer.render(line, entry));
        });
        if !output::write(&mut out, &lines)? {
            return Ok(Exit::Good);
        }
        read.map_err(|error| told(&error))?;
        if is_over || !follow {
            return Ok(Exit::Good);
        }
        std::thread::sleep(EVERY);
    }
}

/// The directory of the log: one that is named, or that of a Job in the memory.
fn directory(args: &EventsArgs) -> Result<PathBuf, Trouble> {
    let named = Path::new(&args.log);
    if args.log.contains('/') || named.is_dir() {
        return if named.is_dir() {
            Ok(named.to_owned())
        } else {
            Err(Trouble::usage(format!("there is no directory {}", named.display())))
        };
    }
    Ok(holder(&args.memory, args.skill.as_deref(), &args.log)?.log(&args.log))
}

/// The chain of the log in a directory, before its first line. That line says whose log it is; one that cannot be read
/// is told as broken when it is.
fn begun(dir: &Path, wait: bool) -> Result<Option<Chain>, Trouble> {
    let first = dir.join(segment::name(1));
    loop {
        match File::open(&first) {
            Ok(file) => {
                let mut line = String::new();
                let unreadable = |error| Trouble::failed(format!("{} cannot be read: {error}", first.display()));
                BufReader::new(file.take(MAX_LINE)).read_line(&mut line).map_err(unreadable)?;
                return Ok(Some(Chain::new(source_of(&line).unwrap_or_default())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The log of a Job that is begun has its directory first.
                if !wait || !dir.is_dir() {
                    return beyond(dir).map(|is_there| is_there.then(|| Chain::new(String::new())));
                }
                std::thread::sleep(EVERY);
            }
            Err(error) => return Err(Trouble::failed(format!("{} cannot be read: {error}", first.display()))),
        }
    }
}

/// Whether a log without its beginning has more: it is broken then, and not absent.
fn beyond(dir: &Path) -> Result<bool, Trouble> {
    let entries =
        std::fs::read_dir(dir).map_err(|error| Trouble::usage(format!("{} cannot be read: {error}", dir.display())))?;
    Ok(entries.flatten().any(|entry| segment::seq_of(&entry.file_name().to_string_lossy()).is_some()))
}
