//! Where texts leave: what is written is redacted first.

use super::redactor::Redactor;
use std::io::{self, Write};

/// Redacts what is written to it. Each write has to be whole lines, as those of `tracing` and of the printer are.
#[derive(Debug)]
pub struct Writer<W> {
    redactor: Redactor,
    out: W,
}

impl Redactor {
    /// Returns a writer that redacts what is written to `out`. Each write has to be whole lines.
    pub fn writer<W: Write>(&self, out: W) -> Writer<W> {
        Writer { redactor: self.clone(), out }
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
