//! Stdout while a Job runs. That it cannot be written stops no Job, but is not kept quiet.

use crate::error::Error;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes on, and remembers the first failure. All clones are one.
#[derive(Debug, Clone)]
pub struct CheckedWriter<W> {
    out: W,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl<W> CheckedWriter<W> {
    /// Nothing has failed yet.
    pub fn new(out: W) -> Self {
        Self { out, failed: Arc::default() }
    }

    /// What has failed so far.
    pub fn failure(&self) -> Failure {
        Failure(self.failed.clone())
    }

    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            // Whoever reads may have seen enough: `bloomery run --json ... | head`.
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

/// Why not all was printed.
#[derive(Debug)]
pub struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    /// Sees that all was printed, as far as somebody read it.
    ///
    /// # Errors
    /// If it was not.
    pub fn into_result(&self) -> Result<(), Error> {
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
            assert_eq!(failure.into_result(), Ok(()));
            out.flush().unwrap_err();
            assert_eq!(failure.into_result().is_err(), fails, "{kind}");
        }
    }
}
