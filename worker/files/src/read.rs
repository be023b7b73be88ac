//! `read_file`: reads a part of a text file.

use crate::Error;
use crate::call::Deadline;
use crate::place::Place;
use crate::root::{Opened, Root};
use crate::secrets::{SecretWindow, Secrets};
use crate::text::{self, Decoded};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// The limit on the text of one answer, in bytes. The history keeps the whole answer.
pub(crate) const MAX_BYTES: usize = 14 * 1024;

/// The size of the read buffer, in bytes.
const BUFFER: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    line: Option<u64>,
    lines: Option<u64>,
    offset: Option<u64>,
}

/// Answers a call. Memory use does not depend on the size of the file.
///
/// # Errors
/// A message for the model.
pub(crate) fn read(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let place = root.place(arguments.path.as_deref())?;
    let opened = root.open_file(&place)?;
    let failed = |error| Error::io("read", &place.shown(), &error);
    let size = opened.metadata.len();
    if text::is_binary(&opened).map_err(failed)? {
        return Err(format!("{} is no text: it has {size} bytes, and NUL bytes among them.", place.shown()).into());
    }
    if arguments.offset.is_some() && arguments.line.is_some() {
        return Err("line and offset are two ways to say where to begin: give one of them.".into());
    }
    let part = match arguments.offset {
        Some(offset) => from_offset(&opened, offset, arguments.lines),
        None => from_line(&opened, arguments.line.unwrap_or(1), arguments.lines, deadline),
    };
    part.and_then(|part| part.without(&root.secrets, &opened)).map_err(failed)?.render(&place, size)
}

/// The part of a file that was read.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    /// The same bytes with secrets redacted.
    shown: Vec<u8>,
    /// Its offset, in bytes.
    start: u64,
    /// The number of its first line, if known.
    line: Option<u64>,
    /// Whether it ends at the end of the file.
    is_end: bool,
    /// The reason why there is no such part, if there is none.
    beyond: Option<String>,
}

impl Part {
    fn beyond(why: String) -> Self {
        Self { bytes: Vec::new(), shown: Vec::new(), start: 0, line: None, is_end: true, beyond: Some(why) }
    }

    /// Redacts secrets. A part that would end within a secret is extended to its end, so that no later call begins there.
    fn without(mut self, secrets: &Secrets, opened: &Opened) -> io::Result<Self> {
        if self.beyond.is_some() {
            return Ok(self);
        }
        let mut sight = SecretWindow::new(&opened.file, secrets);
        sight.extend(self.start, &mut self.bytes)?;
        self.is_end |= self.start + self.bytes.len() as u64 >= opened.metadata.len();
        self.shown = sight.cover(self.start, self.bytes.clone())?;
        Ok(self)
    }

    fn render(self, place: &Place, size: u64) -> Result<String, Error> {
        if let Some(why) = self.beyond {
            return Err(format!("{} {why}.", place.shown()).into());
        }
        if self.bytes.is_empty() {
            return Ok("[the file is empty]".to_owned());
        }
        let end = self.start + self.bytes.len() as u64;
        let ends_line = self.bytes.last() == Some(&b'\n');
        let count = memchr::memchr_iter(b'\n', &self.bytes).count() as u64 + u64::from(!ends_line);
        let next = match self.line {
            _ if self.is_end => "the end".to_owned(),
            Some(line) if ends_line => format!("go on with line {}", line + count),
            _ => format!("go on with offset {end}"),
        };
        let lines = self.line.map_or_else(String::new, |line| format!("lines {line} to {}, ", line + count - 1));
        let Decoded { text, notes } = text::decoded(&self.shown);
        let gap = if self.shown.ends_with(b"\n") { "" } else { "\n" };
        Ok(format!("{text}{gap}[{lines}bytes {} to {end} of {size}; {next}{notes}]", self.start))
    }
}

fn from_offset(opened: &Opened, offset: u64, lines: Option<u64>) -> io::Result<Part> {
    let size = opened.metadata.len();
    if offset >= size && size > 0 {
        return Ok(Part::beyond(format!("has {size} bytes, so nothing begins at offset {offset}")));
    }
    let mut file = &opened.file;
    file.seek(SeekFrom::Start(offset))?;
    let mut part = up_to(&mut BufReader::with_capacity(MAX_BYTES + 4, file), lines)?;
    let before = if offset == 0 { 0 } else { text::continuation(&part.bytes) };
    part.bytes.drain(..before);
    part.start = offset + before as u64;
    Ok(part)
}

fn from_line(opened: &Opened, line: u64, lines: Option<u64>, deadline: &Deadline) -> io::Result<Part> {
    let mut reader = BufReader::with_capacity(BUFFER, &opened.file);
    let (mut at, mut offset) = (1, 0_u64);
    while at < line {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            let count = at - u64::from(offset == 0 || ends_in_newline(&mut reader, offset)?);
            return Ok(Part::beyond(format!("has {count} lines, so there is no line {line}")));
        }
        let taken = memchr::memchr(b'\n', buffer).map_or(buffer.len(), |end| end + 1);
        at += u64::from(buffer.get(taken - 1) == Some(&b'\n'));
        reader.consume(taken);
        offset += taken as u64;
        if deadline.is_over() {
            return Ok(Part::beyond(format!("is so large that line {line} was not reached in time: give an offset")));
        }
    }
    let mut part = up_to(&mut reader, lines)?;
    if part.bytes.is_empty() && line > 1 {
        return Ok(Part::beyond(format!("has {} lines, so there is no line {line}", line - 1)));
    }
    part.start = offset;
    part.line = Some(line);
    Ok(part)
}

fn ends_in_newline<R: Read + Seek>(reader: &mut R, at: u64) -> io::Result<bool> {
    reader.seek(SeekFrom::Start(at.saturating_sub(1)))?;
    let mut last = [0];
    Ok(reader.read(&mut last)? == 1 && last == [b'\n'])
}

/// Reads whole lines up to [`MAX_BYTES`], or a part of the first line if it is longer.
fn up_to(reader: &mut impl Read, lines: Option<u64>) -> io::Result<Part> {
    let mut bytes = Vec::with_capacity(MAX_BYTES + 1);
    reader.by_ref().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() <= MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    let mut ends = memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1);
    let asked = lines.and_then(|lines| ends.nth(usize::try_from(lines.saturating_sub(1)).unwrap_or(usize::MAX)));
    let end = match asked {
        Some(end) => end,
        None if is_whole => bytes.len(),
        None => memchr::memrchr(b'\n', &bytes).map_or_else(|| text::whole_characters(&bytes), |at| at + 1),
    };
    let is_end = is_whole && end == bytes.len();
    bytes.truncate(end);
    Ok(Part { bytes, shown: Vec::new(), start: 0, line: None, is_end, beyond: None })
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
