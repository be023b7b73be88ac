//! Where texts leave: what is written is redacted first.

use super::Redactor;
use std::io::{self, Write};

/// Redacts what is written to it. Each write has to be whole lines, as those of `tracing` and of the printer are.
#[derive(Debug)]
pub struct Writer<W> {
    redactor: Redactor,
    out: W,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(redactor: Redactor, out: W) -> Self {
        Self { redactor, out }
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.out.write_all(self.redactor.text(&String::from_utf8_lossy(lines)).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
