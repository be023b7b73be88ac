//! A writer that writes on a separate thread, so that the Job continues when the reader of its output pauses.
//!
//! `tracing-appender` has one too. This crate does not use it, because its flush does nothing, its guard waits at most
//! 1.1 s, and its queue is limited by messages instead of bytes. A channel of the standard library has no limit in bytes
//! either: one message can have the lines of many events.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// The size of the buffer, in bytes. A write that does not fit blocks.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Buffers what is written to it, and writes it in the same order on a separate thread. A flush waits until everything is
/// written. Without a flush, buffered data may be lost when the process ends.
#[derive(Debug)]
pub struct BackgroundWriter {
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    buffered: Vec<u8>,
    is_writing: bool,
    is_closed: bool,
}

impl BackgroundWriter {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let thread_queue = Arc::clone(&queue);
        let write = move || {
            while let Some(bytes) = thread_queue.take() {
                // The reader may have closed its end, which must not stop the Job.
                let _ = out.write_all(&bytes).and_then(|()| out.flush());
                thread_queue.mark_written();
            }
        };
        Builder::new().name("printer".to_owned()).stack_size(256 * 1024).spawn(write)?;
        Ok(Self { queue })
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.state(), |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for data and removes it from the buffer. Returns `None` once the writer is dropped and everything is written.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.wait_while(|state| state.buffered.is_empty() && !state.is_closed);
        state.is_writing = !state.buffered.is_empty();
        state.is_writing.then(|| std::mem::take(&mut state.buffered))
    }

    fn mark_written(&self) {
        self.state().is_writing = false;
        self.changed.notify_all();
    }
}

impl Write for BackgroundWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full =
            |state: &State| !state.buffered.is_empty() && state.buffered.len() + bytes.len() > MAX_BUFFERED_BYTES;
        self.queue.wait_while(is_full).buffered.extend_from_slice(bytes);
        self.queue.changed.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        drop(self.queue.wait_while(|state| state.is_writing || !state.buffered.is_empty()));
        Ok(())
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.queue.state().is_closed = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Writes once for each permit, and passes on what it writes. Without a sender of permits, it writes at once.
    struct Slow {
        permits: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.permits.recv();
            self.written.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (BackgroundWriter, Sender<()>, Receiver<Vec<u8>>) {
        let ((permit, permits), (writes, written)) = (channel(), channel());
        (BackgroundWriter::new(Slow { permits, written: writes }).unwrap(), permit, written)
    }

    #[test]
    fn writes_do_not_wait_keep_their_order_and_are_complete_after_a_flush_or_drop() {
        let (mut output, permit, written) = slow();
        for n in 0..10_000 {
            writeln!(output, "{n}").unwrap();
        }
        drop(permit);
        output.flush().unwrap();
        output.write_all(b"last\n").unwrap();
        drop(output);
        let all: Vec<u8> = written.iter().flatten().collect();
        let expected: String = (0..10_000).map(|n| format!("{n}\n")).chain(["last\n".to_owned()]).collect();
        assert_eq!(String::from_utf8(all).unwrap(), expected);
    }

    #[test]
    fn a_write_beyond_the_buffer_blocks() {
        let (mut output, permit, written) = slow();
        let line = vec![b'x'; MAX_BUFFERED_BYTES];
        let writer = std::thread::spawn(move || {
            for _ in 0..4 {
                output.write_all(&line).unwrap();
                assert!(output.queue.state().buffered.len() <= MAX_BUFFERED_BYTES);
            }
        });
        // The thread may write one, and the buffer may hold one. Each of the others blocks.
        for n in 0..4 {
            assert!(written.try_recv().is_err());
            assert!(n > 1 || !writer.is_finished());
            permit.send(()).unwrap();
            assert_eq!(written.recv().unwrap().len(), MAX_BUFFERED_BYTES);
        }
        writer.join().unwrap();
    }

    #[test]
    fn an_output_that_fails_does_not_block_or_fail_the_writer() {
        struct Fails;
        impl Write for Fails {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut output = BackgroundWriter::new(Fails).unwrap();
        output.write_all(&vec![b'x'; 2 * MAX_BUFFERED_BYTES]).unwrap();
        output.write_all(b"x").unwrap();
        output.flush().unwrap();
    }
}
