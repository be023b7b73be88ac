//! Stdout while a Job runs. A failed write does not stop the Job. It is reported when the Job ends.

use crate::error::Error;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A writer that remembers its first failure. Clones share this failure.
#[derive(Debug, Clone)]
pub struct CheckedWriter<W> {
    out: W,
    first_failure: Arc<Mutex<Option<io::Error>>>,
}

impl<W> CheckedWriter<W> {
    /// Wraps a writer.
    pub fn new(out: W) -> Self {
        Self { out, first_failure: Arc::default() }
    }

    /// Returns a handle to the first failure.
    pub fn failure(&self) -> Failure {
        Failure(self.first_failure.clone())
    }

    /// Remembers the error of a result, and returns the result with an error of the same kind.
    fn remember_failure<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            // A closed pipe is not a failure: `bloomery run --json ... | head`. An interrupted write is repeated by the caller.
            if !matches!(kind, ErrorKind::BrokenPipe | ErrorKind::Interrupted) {
                self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for CheckedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.remember_failure(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.remember_failure(flushed)
    }
}

/// The first failure of a writer, if there is one.
#[derive(Debug)]
pub struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// Checks that all output was written. A closed pipe is not a failure.
    ///
    /// # Errors
    /// If a write has failed.
    pub fn check(&self) -> Result<(), Error> {
        let first_failure = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        first_failure.map_or(Ok(()), |error| Err(Error::failed(format!("stdout cannot be written: {error}"))))
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
    fn a_failure_is_remembered_and_a_closed_pipe_is_not_a_failure() {
        for (kind, fails) in [(ErrorKind::StorageFull, true), (ErrorKind::BrokenPipe, false)] {
            let mut out = CheckedWriter::new(Fails(kind));
            let failure = out.failure();
            out.write_all(b"one\n").unwrap();
            assert_eq!(failure.check(), Ok(()));
            out.flush().unwrap_err();
            assert_eq!(failure.check().is_err(), fails, "{kind}");
        }
    }
}
