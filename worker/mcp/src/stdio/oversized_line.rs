//! A line that is larger than the limit.

use crate::oversized::{self, Answer, SHOWN_BYTES};
use std::io;

/// The beginning and the end of an answer that is larger than the limit, while its line is read. The rest takes no memory.
#[derive(Debug)]
pub(super) struct OversizedLine {
    answer: Answer,
    end: Vec<u8>,
    bytes: usize,
}

impl OversizedLine {
    /// Begins with the part of the line that was read.
    ///
    /// # Errors
    /// If the line does not begin like an answer.
    pub(super) fn begin(read: &[u8], limit: usize) -> io::Result<Self> {
        let answer = oversized::read_beginning(read).ok_or_else(|| too_large(limit))?;
        let mut line = Self { answer, end: Vec::new(), bytes: 0 };
        line.push(read);
        Ok(line)
    }

    /// Adds the next part of the line.
    pub(super) fn push(&mut self, part: &[u8]) {
        self.bytes = self.bytes.saturating_add(part.len());
        self.end.extend_from_slice(part.get(part.len().saturating_sub(SHOWN_BYTES)..).unwrap_or_default());
        self.end.drain(..self.end.len().saturating_sub(SHOWN_BYTES));
    }

    /// Returns the message that stands for the whole line.
    ///
    /// # Errors
    /// If the line does not show which request it answers.
    pub(super) fn finish(self, limit: usize) -> io::Result<Vec<u8>> {
        let id = self.answer.id.clone().or_else(|| oversized::id_at_end(&self.end));
        let id = id.ok_or_else(|| too_large(limit))?;
        Ok(self.answer.stand_in(&id, &format!("has {} bytes, and the limit is {limit}", self.bytes)).into_bytes())
    }
}

fn too_large(limit: usize) -> io::Error {
    io::Error::other(format!("it wrote a line of more than {limit} bytes"))
}
