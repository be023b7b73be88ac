//! A writer that redacts.

use super::redactor::Redactor;
use std::io::{self, Write};

/// Redacts the text of each write, and then writes it to `out`. Each write must consist of whole lines, as the writes of `tracing`
/// and of the printer do.
#[derive(Debug)]
pub struct Writer<W> {
    redactor: Redactor,
    out: W,
}

impl Redactor {
    /// Returns a writer to `out` that redacts each write. Each write must consist of whole lines.
    pub fn writer<W: Write>(&self, out: W) -> Writer<W> {
        Writer { redactor: self.clone(), out }
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.out.write_all(self.redactor.redact_text(&String::from_utf8_lossy(lines)).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
