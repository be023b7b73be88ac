//! Stdout while a Job runs. A failed write does not stop the Job, but is reported at its end.

use crate::error::Error;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A writer that remembers its first failure. Clones share it.
#[derive(Debug, Clone)]
pub struct CheckedWriter<W> {
    out: W,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl<W> CheckedWriter<W> {
    /// Wraps a writer.
    pub fn new(out: W) -> Self {
        Self { out, failed: Arc::default() }
    }

    /// Returns a handle to the failure.
    pub fn failure(&self) -> Failure {
        Failure(self.failed.clone())
    }

    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            // The reader closed the pipe: `bloomery run --json ... | head`.
            if !matches!(kind, ErrorKind::BrokenPipe | ErrorKind::Interrupted) {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for CheckedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

/// The failure of a writer, if any.
#[derive(Debug)]
pub struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// Returns whether all output was written. A closed pipe is no failure.
    ///
    /// # Errors
    /// If a write has failed.
    pub fn result(&self) -> Result<(), Error> {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), |error| Err(Error::failed(format!("stdout cannot be written: {error}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails(ErrorKind);

    impl Write for Fails {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn the_first_failure_is_remembered_and_a_reader_who_is_gone_is_none() {
        for (kind, fails) in [(ErrorKind::StorageFull, true), (ErrorKind::BrokenPipe, false)] {
            let mut out = CheckedWriter::new(Fails(kind));
            let failure = out.failure();
            out.write_all(b"one\n").unwrap();
            assert_eq!(failure.result(), Ok(()));
            out.flush().unwrap_err();
            assert_eq!(failure.result().is_err(), fails, "{kind}");
        }
    }
}
