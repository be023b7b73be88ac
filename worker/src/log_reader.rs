//! Reads a stored log and formats its events, for people or programs. It does not write to the log.

use crate::printer::{Format, Printer};
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, read_source};
use bloomery_journal::files::Disk;
use bloomery_journal::{Segments, segment};
use bloomery_redact::plain_file;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The longest first line that is read to find the source of the log, in bytes.
const MAX_FIRST_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The error of a log that cannot be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory has no events.
    #[error("there are no events in {}", .0.display())]
    Empty(PathBuf),
    /// A file, or the directory, cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The log is broken. The events before the break were printed.
    #[error(transparent)]
    Log(#[from] bloomery_journal::Error),
    /// The output cannot be written.
    #[error("stdout cannot be written: {0}")]
    Out(io::Error),
}

/// Reads a log, one segment after another.
#[derive(Debug)]
pub struct LogReader {
    segments: Segments<Disk>,
    chain: Chain,
    printer: Printer,
    has_ended_or_parked: bool,
}

/// The formatted events of one segment. Events are read by segment, because a whole log may be larger than the memory.
#[derive(Debug)]
pub struct PrintedSegment {
    /// One line for each event.
    pub lines: String,
    /// Whether there was a segment. If not, the log has no more events yet. After an error, `lines` has the events before the break.
    pub read: Result<bool, bloomery_journal::Error>,
}

impl LogReader {
    /// Opens the log in a directory. Returns `None` if it has no event yet.
    ///
    /// The first line names the source of the log, which all lines must have. If it is invalid, reading the first segment fails.
    ///
    /// # Errors
    /// If the log, or the directory, cannot be read.
    pub fn open(dir: PathBuf, format: Format) -> Result<Option<Self>, Error> {
        let Some(chain) = chain(&dir)? else { return Ok(None) };
        let printer = Printer::new(format, Box::new(io::sink()));
        Ok(Some(Self { segments: Segments::new(Disk, dir), chain, printer, has_ended_or_parked: false }))
    }

    /// Reads and formats the next segment.
    pub fn next_segment(&mut self) -> PrintedSegment {
        let Self { segments, chain, printer, has_ended_or_parked } = self;
        let mut lines = String::new();
        let read = segments.read_segment(chain, &mut |line, entry| {
            *has_ended_or_parked = matches!(entry.event, Event::Finished { .. } | Event::Parked { .. });
            let text_line = printer.text_line(entry);
            printer.format(&mut lines, &text_line, line);
        });
        PrintedSegment { lines, read }
    }

    /// Returns whether the last event that was read ends or parks the conversation. If so, the next event may be days away.
    pub fn has_ended_or_parked(&self) -> bool {
        self.has_ended_or_parked
    }
}

/// Prints a whole log to `out`.
///
/// # Errors
/// If there is no log, or it is broken. The events before the break are printed.
pub fn print(dir: &Path, format: Format, out: &mut impl Write) -> Result<(), Error> {
    let mut reader = LogReader::open(dir.to_owned(), format)?.ok_or_else(|| Error::Empty(dir.to_owned()))?;
    loop {
        let PrintedSegment { lines, read } = reader.next_segment();
        match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) if read? => {}
            Ok(()) => return Ok(()),
            // The program that reads the output has closed it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Error::Out(error)),
        }
    }
}

/// Returns the chain for reading the log in a directory from its first line, or `None` if the log has no event yet.
pub(crate) fn chain(dir: &Path) -> Result<Option<Chain>, Error> {
    let first = dir.join(segment::name(1));
    let unreadable = |source| Error::Unreadable { path: first.clone(), source };
    match plain_file::open(&first) {
        Ok(file) => {
            let mut line = String::new();
            BufReader::new(file.take(MAX_FIRST_LINE_BYTES)).read_line(&mut line).map_err(unreadable)?;
            Ok(Some(Chain::new(read_source(&line).unwrap_or_default())))
        }
        // A log with later segments but without the first one is broken, not absent.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let unreadable = |source| Error::Unreadable { path: dir.to_owned(), source };
            std::fs::read_dir(dir).map_err(unreadable)?;
            Ok(has_segments(dir).then(|| Chain::new(String::new())))
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Returns whether a directory has a segment of a log. A directory that cannot be read counts as one with a segment, unless it is missing.
pub(crate) fn has_segments(dir: &Path) -> bool {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.flatten().any(|entry| segment::seq_of(&entry.file_name().to_string_lossy()).is_some()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns the source of the log in a directory, if its first line can be read.
pub(crate) fn source(dir: &Path) -> Option<String> {
    let file = plain_file::open(&dir.join(segment::name(1))).ok()?;
    let mut line = String::new();
    BufReader::new(file.take(MAX_FIRST_LINE_BYTES)).read_line(&mut line).ok()?;
    read_source(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::event::CallId;
    use bloomery_engine::line::EventTime;

    /// A person who may write to the memory may replace a segment with a named pipe.
    #[test]
    fn a_named_pipe_in_place_of_a_segment_is_an_error() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = |seq| mknodat(CWD, dir.path().join(segment::name(seq)), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let error = || print(dir.path(), Format::Json, &mut Vec::new()).unwrap_err().to_string();
        pipe(1);
        assert!(error().contains("cannot be read"), "{}", error());
        let mut chain = Chain::new("urn:job:1".to_owned());
        let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
        let (line, _) = chain.append(Event::ToolStarted { call: CallId::new(1, 0) }, stamp).unwrap();
        std::fs::remove_file(dir.path().join(segment::name(1))).unwrap();
        std::fs::write(dir.path().join(segment::name(1)), line + "\n").unwrap();
        pipe(2);
        assert!(error().contains("read the segment"), "{}", error());
    }

    #[test]
    fn a_broken_log_is_printed_up_to_the_break() {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = Chain::new("urn:job:1".to_owned());
        let stamp = || EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
        let mut lines = Vec::new();
        for n in 0..3 {
            let (line, _) = chain.append(Event::ToolStarted { call: CallId::new(1, n) }, stamp()).unwrap();
            lines.push(line + "\n");
        }
        std::fs::write(dir.path().join(segment::name(1)), lines[..2].concat()).unwrap();
        std::fs::write(dir.path().join(segment::name(3)), &lines[2]).unwrap();
        let mut out = Vec::new();
        print(dir.path(), Format::Json, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), lines.concat());
        let mut out = Vec::new();
        print(dir.path(), Format::Text, &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out).matches("tool.started").count(), 3);

        std::fs::write(dir.path().join(segment::name(3)), lines[2].replace("tool.started", "tool.stopped")).unwrap();
        let mut out = Vec::new();
        assert!(matches!(print(dir.path(), Format::Json, &mut out), Err(Error::Log(_))));
        assert_eq!(String::from_utf8(out).unwrap(), lines[..2].concat());
    }

    /// Records the length of each write, and fails after a number of writes.
    struct Pipe(Vec<usize>, usize);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() == self.1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn segments_are_read_one_by_one_and_only_while_the_output_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = Chain::new("urn:job:1".to_owned());
        let mut lengths = Vec::new();
        for seq in 1..=5 {
            let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
            let (line, _) = chain.append(Event::ToolStarted { call: CallId::new(1, 0) }, stamp).unwrap();
            std::fs::write(dir.path().join(segment::name(seq)), line.clone() + "\n").unwrap();
            lengths.push(line.len() + 1);
        }
        let mut pipe = Pipe(Vec::new(), usize::MAX);
        print(dir.path(), Format::Json, &mut pipe).unwrap();
        assert_eq!(pipe.0, lengths);
        // The segments after a closed output are not read, so the broken one is not an error.
        std::fs::write(dir.path().join(segment::name(4)), "broken").unwrap();
        let mut closed = Pipe(Vec::new(), 2);
        print(dir.path(), Format::Json, &mut closed).unwrap();
        assert_eq!(closed.0, lengths[..2]);
        assert!(print(dir.path(), Format::Json, &mut Pipe(Vec::new(), usize::MAX)).is_err());
    }

    #[test]
    fn an_absent_log_is_an_error_that_differs_from_a_broken_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let error = print(dir.path(), Format::Text, &mut out).unwrap_err();
        assert!(matches!(error, Error::Empty(_)), "{error}");
        let error = print(&dir.path().join("none"), Format::Text, &mut out).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        std::fs::write(dir.path().join(segment::name(7)), "{}\n").unwrap();
        let error = print(dir.path(), Format::Text, &mut out).unwrap_err();
        assert!(matches!(error, Error::Log(bloomery_journal::Error::Broken { .. })), "{error}");
        assert!(out.is_empty());
    }
}
