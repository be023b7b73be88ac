//! A writer that writes on a separate thread, so that the Job continues when the reader of its output pauses.
//!
//! `tracing-appender` has one too. This crate does not use it, because its flush does nothing and its guard waits at most
//! 1.1 s: output that a slow reader has not taken by then is lost.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

/// The maximum number of queued writes. One more write blocks.
const MAX_QUEUED_WRITES: usize = 128;

/// Queues what is written to it, and writes it in the same order on a separate thread. A flush waits until everything is
/// written. Without a flush, queued data may be lost when the process ends.
#[derive(Debug)]
pub struct BackgroundWriter {
    queue: SyncSender<Request>,
}

#[derive(Debug)]
enum Request {
    Write(Vec<u8>),
    /// Dropping the sender acknowledges the flush.
    Flush(SyncSender<()>),
}

impl BackgroundWriter {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, requests) = sync_channel(MAX_QUEUED_WRITES);
        Builder::new().name("printer".to_owned()).stack_size(256 * 1024).spawn(move || write_all(&requests, out))?;
        Ok(Self { queue })
    }

    fn send(&self, request: Request) -> io::Result<()> {
        self.queue.send(request).map_err(|_| ErrorKind::BrokenPipe.into())
    }
}

/// Performs requests until the writer is dropped.
fn write_all(requests: &Receiver<Request>, mut out: impl Write) {
    for request in requests {
        match request {
            // The reader may have closed its end, which must not stop the Job.
            Request::Write(bytes) => drop(out.write_all(&bytes).and_then(|()| out.flush())),
            Request::Flush(acknowledge) => drop(acknowledge),
        }
    }
}

impl Write for BackgroundWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(Request::Write(bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (acknowledge, acknowledged) = sync_channel(0);
        self.send(Request::Flush(acknowledge))?;
        // Receiving fails once the other end is dropped, which is the acknowledgement.
        let _ = acknowledged.recv();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Writes once for each permit, and passes on what it writes.
    struct Slow {
        permits: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a sender of permits, it writes at once.
            let _ = self.permits.recv();
            self.written.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (BackgroundWriter, Sender<()>, Receiver<Vec<u8>>) {
        let ((permit, permits), (written, all_written)) = (channel(), channel());
        (BackgroundWriter::new(Slow { permits, written }).unwrap(), permit, all_written)
    }

    #[test]
    fn writes_do_not_wait_for_a_slow_reader_and_a_flush_waits_for_all_of_them_in_order() {
        let (mut output, permit, written) = slow();
        let lines: Vec<String> = (0..MAX_QUEUED_WRITES).map(|n| format!("{n}\n")).collect();
        for line in &lines {
            output.write_all(line.as_bytes()).unwrap();
        }
        drop(permit);
        output.flush().unwrap();
        let all: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(all).unwrap(), lines.concat());
    }

    #[test]
    fn a_write_to_a_full_queue_blocks() {
        let (mut output, permit, written) = slow();
        // One write is on its way, and the queue holds the others.
        let count = MAX_QUEUED_WRITES + 2;
        let writer = std::thread::spawn(move || {
            for _ in 0..count {
                output.write_all(b"x").unwrap();
            }
        });
        assert!(!writer.is_finished());
        for _ in 0..count {
            permit.send(()).unwrap();
            written.recv().unwrap();
        }
        writer.join().unwrap();
    }

    #[test]
    fn an_output_that_fails_does_not_block_or_fail_the_writer() {
        struct Fails;
        impl Write for Fails {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut output = BackgroundWriter::new(Fails).unwrap();
        for _ in 0..2 * MAX_QUEUED_WRITES {
            output.write_all(b"x").unwrap();
        }
        output.flush().unwrap();
    }
}
