//! Reads the standard error of a program.

use crate::program::StderrListener;
use bloomery_crds::text::{alters_display, bounded};
use bloomery_redact::Redactor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

/// The longest line that is passed on, in bytes.
const MAX_LINE_BYTES: usize = 1024;

/// The number of lines that are kept for error messages.
const MAX_KEPT_LINES: usize = 3;

/// The longest kept line, in bytes.
const MAX_KEPT_LINE_BYTES: usize = 120;

/// The longest wait for the rest of the output after the program ended. Other processes may hold the pipe open.
const REST_TIMEOUT: Duration = Duration::from_millis(500);

type KeptLines = Arc<Mutex<VecDeque<String>>>;

/// Passes the lines of standard error to a listener, and keeps the last lines.
#[derive(Debug)]
pub(super) struct StderrReader {
    kept: KeptLines,
    reading: Option<JoinHandle<()>>,
}

impl StderrReader {
    /// Starts reading.
    pub(super) fn start(stderr: Option<ChildStderr>, listener: StderrListener, redactor: Redactor) -> Self {
        let kept = KeptLines::default();
        let reading = stderr.map(|stderr| tokio::spawn(read(stderr, listener, Arc::clone(&kept), redactor)));
        Self { kept, reading }
    }

    /// Returns the last lines of a program that has ended.
    pub(super) async fn last_lines(&mut self) -> Vec<String> {
        if let Some(reading) = self.reading.take() {
            let _ = tokio::time::timeout(REST_TIMEOUT, reading).await;
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

fn keep(kept: &KeptLines, line: &str) {
    let shown: String = line.chars().map(|c| if alters_display(c) { ' ' } else { c }).collect();
    if shown.trim().is_empty() {
        return;
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_back(bounded(shown.trim(), MAX_KEPT_LINE_BYTES));
    if kept.len() > MAX_KEPT_LINES {
        kept.pop_front();
    }
}

/// Passes on the lines of a program's standard error, redacted and cut to [`MAX_LINE_BYTES`].
async fn read(stderr: impl AsyncRead + Unpin, listener: StderrListener, kept: KeptLines, redactor: Redactor) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let Ok(read) = stderr.fill_buf().await else { return };
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        // The redactor only finds a secret if the line contains all of it.
        let room = (MAX_LINE_BYTES + redactor.max_value_length()).saturating_sub(line.len());
        line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        let (used, is_over) = (end.map_or(read.len(), |end| end + 1), read.is_empty());
        if end.is_some() || (is_over && !line.is_empty()) {
            let text = redactor.redact_beginning(&String::from_utf8_lossy(&line), MAX_LINE_BYTES).into_owned();
            let text = bounded(&text, MAX_LINE_BYTES);
            listener(&text);
            keep(&kept, &text);
            line.clear();
        }
        if is_over {
            return;
        }
        stderr.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that the listener receives for a text on standard error.
    async fn passed_on(text: &str, redactor: Redactor) -> Vec<String> {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&passed);
        let listener: StderrListener = Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()));
        read(text.as_bytes(), listener, KeptLines::default(), redactor).await;
        passed.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn no_cut_leaves_a_part_of_a_secret() {
        let redactor = Redactor::default();
        let long = "0123456789".repeat(200);
        redactor.learn("key", b"sk-abcdefgh");
        redactor.learn("long", long.as_bytes());
        for before in (MAX_LINE_BYTES - 15..MAX_LINE_BYTES + 5).chain([0, 8 * 1024 - 5, 64 * 1024 - 5]) {
            for (value, part) in [("sk-abcdefgh", "sk-"), (long.as_str(), "0123")] {
                // The mark of the first secret is shorter than the secret. So the cut moves, perhaps into the second secret.
                let text = format!("{}{value}{}{value}\nnext\n", "#".repeat(before), "#".repeat(300));
                let lines = passed_on(&text, redactor.clone()).await;
                assert!(lines.len() == 2 && lines[1] == "next", "{lines:?}");
                assert!(lines[0].len() <= MAX_LINE_BYTES && !lines[0].contains(part), "{before}: {}", lines[0]);
            }
        }
        let key = "first-line-of-it\nsecond-line-of-it";
        redactor.learn("lines", key.as_bytes());
        assert_eq!(passed_on(key, redactor).await, ["[redacted: lines]", "[redacted: lines]"]);
    }
}
