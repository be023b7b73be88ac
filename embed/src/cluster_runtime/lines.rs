//! The lines of the log of a pod.

use crate::cluster::pods::PodLog;
use crate::error::{Error, ErrorKind};
use futures::{AsyncBufReadExt, AsyncReadExt};

/// The longest line, in bytes. An event is smaller.
const MAX_BYTES: usize = 16 << 20;

/// Reads lines.
pub(super) struct Lines {
    log: PodLog,
    pod: String,
    line: Vec<u8>,
}

impl Lines {
    /// Creates a reader of the log of a pod.
    pub(super) fn new(log: PodLog, pod: &str) -> Self {
        Self { log, pod: pod.to_owned(), line: Vec::new() }
    }

    /// Reads the next line. Returns it without its line feed; `None` at the end of the log.
    ///
    /// # Errors
    /// If the log is interrupted, or a line is too long.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        let Self { log, pod, line } = self;
        line.clear();
        let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
        let read = log.take(limit).read_until(b'\n', line).await;
        read.map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("the log of the pod {pod} was interrupted: {error}"))
        })?;
        if line.len() >= MAX_BYTES {
            return Err(Error::failed(format!("the log of the pod {pod} has a line of more than {MAX_BYTES} bytes")));
        }
        let line: &[u8] = line;
        Ok(if line.is_empty() { None } else { Some(line.strip_suffix(b"\n").unwrap_or(line)) })
    }
}
