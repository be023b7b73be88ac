//! `read_file`: reads a part of a text file.

use crate::Error;
use crate::call::Deadline;
use crate::resource_path::ResourcePath;
use crate::root::{Opened, Root};
use crate::secrets::{SecretWindow, Secrets};
use crate::text::{self, Decoded};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// The limit on the text of one answer, in bytes. The conversation's history contains the whole answer.
pub(crate) const MAX_BYTES: usize = 14 * 1024;

/// The size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    line: Option<u64>,
    lines: Option<u64>,
    offset: Option<u64>,
}

/// Answers a call of `read_file`. Memory use does not depend on the size of the file.
///
/// # Errors
/// A message for the model.
pub(crate) fn read(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let path = root.resource_path(arguments.path())?;
    let opened = root.open_file(&path)?;
    read_opened(&path, &opened, (arguments, deadline), &root.secrets)
}

/// Answers a call of `read_file` from the open file.
pub(crate) fn read_opened(
    path: &ResourcePath,
    opened: &Opened,
    (arguments, deadline): (&Arguments, &Deadline),
    secrets: &Secrets,
) -> Result<String, Error> {
    let size = opened.metadata.len();
    if arguments.offset.is_some() && arguments.line.is_some() {
        return Err("line and offset exclude each other. Set one of them.".into());
    }
    let part = read_part(opened, arguments, deadline).and_then(|part| Ok(part.redact(secrets, opened)?));
    match part {
        Ok(part) => Ok(part.render(size)),
        Err(ReadError::Io(error)) => Err(Error::io("read", &path.describe(), &error)),
        Err(ReadError::Refused(reason)) => Err(format!("{} {reason}.", path.describe()).into()),
    }
}

/// The reason that a part of a file cannot be read.
enum ReadError {
    Io(io::Error),
    /// The part does not exist, is not text, or was not reached in time. The reason is a clause that follows the path of the file.
    Refused(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn read_part(opened: &Opened, arguments: &Arguments, deadline: &Deadline) -> Result<Part, ReadError> {
    if text::is_binary(opened)? {
        let size = opened.metadata.len();
        return Err(ReadError::Refused(format!("is not a text file: it has {size} bytes, including NUL bytes")));
    }
    match arguments.offset {
        Some(offset) => from_offset(opened, offset, arguments.lines),
        None => from_line(opened, arguments.line.unwrap_or(1), arguments.lines, deadline),
    }
}

/// The part of a file that was read.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    /// The same bytes with secrets redacted.
    redacted: Vec<u8>,
    /// The offset of the part, in bytes.
    start: u64,
    /// The number of the first line, if known.
    line: Option<u64>,
    /// Whether the part ends at the end of the file.
    is_end: bool,
}

impl Part {
    /// Redacts secrets. A part that would end within a secret is extended to the end of the secret, so that no later call begins
    /// within it.
    fn redact(mut self, secrets: &Secrets, opened: &Opened) -> io::Result<Self> {
        let mut window = SecretWindow::new(&opened.file, secrets);
        window.extend(self.start, &mut self.bytes)?;
        self.is_end |= self.start + self.bytes.len() as u64 >= opened.metadata.len();
        self.redacted = window.redact(self.start, self.bytes.clone())?;
        Ok(self)
    }

    /// Formats the part for the model, with a note about its position in a file of `size` bytes.
    fn render(self, size: u64) -> String {
        if self.bytes.is_empty() {
            return "[the file is empty]".to_owned();
        }
        let end = self.start + self.bytes.len() as u64;
        let ends_line = self.bytes.last() == Some(&b'\n');
        let count = memchr::memchr_iter(b'\n', &self.bytes).count() as u64 + u64::from(!ends_line);
        let next = match self.line {
            _ if self.is_end => "end of file".to_owned(),
            Some(line) if ends_line => format!("continue with line {}", line + count),
            _ => format!("continue with offset {end}"),
        };
        let lines = self.line.map_or_else(String::new, |line| format!("lines {line} to {}, ", line + count - 1));
        let Decoded { text, notes } = text::decode(&self.redacted);
        let gap = if self.redacted.ends_with(b"\n") { "" } else { "\n" };
        format!("{text}{gap}[{lines}bytes {} to {end} of {size}; {next}{notes}]", self.start)
    }
}

/// Reads a part that begins at an offset. Skips bytes in the middle of a character.
fn from_offset(opened: &Opened, offset: u64, lines: Option<u64>) -> Result<Part, ReadError> {
    let size = opened.metadata.len();
    if offset >= size && size > 0 {
        return Err(ReadError::Refused(format!("has {size} bytes, so offset {offset} is after its end")));
    }
    let mut file = &opened.file;
    file.seek(SeekFrom::Start(offset))?;
    let mut part = read_lines(&mut BufReader::with_capacity(MAX_BYTES + 1, file), lines)?;
    let skipped = if offset == 0 { 0 } else { text::leading_continuation_bytes(&part.bytes) };
    part.bytes.drain(..skipped);
    part.start = offset + skipped as u64;
    Ok(part)
}

/// Reads a part that begins at a line.
fn from_line(opened: &Opened, line: u64, lines: Option<u64>, deadline: &Deadline) -> Result<Part, ReadError> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, &opened.file);
    let (mut current, mut offset) = (1, 0_u64);
    while current < line {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            // A line feed at the end begins no further line.
            let count = current - u64::from(offset == 0 || ends_in_newline(&mut reader, offset)?);
            return Err(ReadError::Refused(format!("has {count} lines, so line {line} does not exist")));
        }
        let taken = memchr::memchr(b'\n', buffer).map_or(buffer.len(), |end| end + 1);
        current += u64::from(buffer.get(taken - 1) == Some(&b'\n'));
        reader.consume(taken);
        offset += taken as u64;
        if deadline.is_over() {
            return Err(ReadError::Refused(format!(
                "is so large that line {line} was not reached in time. Set offset instead of line"
            )));
        }
    }
    let mut part = read_lines(&mut reader, lines)?;
    if part.bytes.is_empty() && line > 1 {
        return Err(ReadError::Refused(format!("has {} lines, so line {line} does not exist", line - 1)));
    }
    part.start = offset;
    part.line = Some(line);
    Ok(part)
}

/// Returns whether the byte before an offset is a line feed.
fn ends_in_newline<R: Read + Seek>(reader: &mut R, at: u64) -> io::Result<bool> {
    reader.seek(SeekFrom::Start(at.saturating_sub(1)))?;
    let mut last = [0];
    Ok(reader.read(&mut last)? == 1 && last == [b'\n'])
}

/// Reads at most `lines` whole lines with at most [`MAX_BYTES`] bytes, or a part of the first line if it is longer.
fn read_lines(reader: &mut impl Read, lines: Option<u64>) -> io::Result<Part> {
    let mut bytes = Vec::with_capacity(MAX_BYTES + 1);
    reader.by_ref().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() <= MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    let mut ends = memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1);
    let requested_end =
        lines.and_then(|lines| ends.nth(usize::try_from(lines.saturating_sub(1)).unwrap_or(usize::MAX)));
    let end = match requested_end {
        Some(end) => end,
        None if is_whole => bytes.len(),
        None => memchr::memrchr(b'\n', &bytes).map_or_else(|| text::end_of_complete_characters(&bytes), |at| at + 1),
    };
    let is_end = is_whole && end == bytes.len();
    bytes.truncate(end);
    Ok(Part { bytes, redacted: Vec::new(), start: 0, line: None, is_end })
}

impl Arguments {
    /// Returns the path in the call, if it has one.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
