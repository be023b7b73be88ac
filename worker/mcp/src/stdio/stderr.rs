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

/// The number of lines that are kept for messages.
const MAX_KEPT_LINES: usize = 3;

/// The longest kept line, in bytes.
const MAX_KEPT_LINE_BYTES: usize = 120;

/// The longest wait for the rest of the output after the program ended. Other processes may hold the pipe open.
const REST_TIMEOUT: Duration = Duration::from_millis(500);

/// The end of the standard error of a program, for messages: the last lines that are not blank. They are cut, and have no characters that
/// control a terminal.
#[derive(Debug, Clone, Default)]
pub struct StderrEnd(VecDeque<String>);

impl StderrEnd {
    /// Adds a line.
    pub fn push(&mut self, line: &str) {
        let shown: String = line.chars().map(|c| if alters_display(c) { ' ' } else { c }).collect();
        if shown.trim().is_empty() {
            return;
        }
        if self.0.len() == MAX_KEPT_LINES {
            self.0.pop_front();
        }
        self.0.push_back(bounded(shown.trim(), MAX_KEPT_LINE_BYTES));
    }

    /// Returns the clause with the lines. It continues a message about the program, and is empty if there are no lines.
    pub fn clause(&self) -> String {
        self.clauses().next().unwrap_or_default()
    }

    /// Removes the clause from a message about a program that wrote the last of these lines, or all of them.
    pub fn removed_from(&self, message: &str) -> String {
        let without = |clause: String| {
            let (before, after) = message.split_once(clause.as_str())?;
            // The full stop of the last line ended the sentence.
            let stop = if clause.ends_with(['.', '!', '?', '…']) { "." } else { "" };
            Some(format!("{before}{stop}{after}"))
        };
        self.clauses().find_map(without).unwrap_or_else(|| message.to_owned())
    }

    /// Returns the clauses with all lines, with all but the first, and so on.
    fn clauses(&self) -> impl Iterator<Item = String> {
        (0..self.0.len()).map(move |first| {
            let lines: Vec<&str> = self.0.iter().skip(first).map(String::as_str).collect();
            format!("; the end of its stderr: {}", lines.join(" / "))
        })
    }
}

type SharedEnd = Arc<Mutex<StderrEnd>>;

/// Passes the lines of standard error to a listener, and keeps their end.
#[derive(Debug)]
pub(super) struct StderrReader {
    end: SharedEnd,
    reading: Option<JoinHandle<()>>,
}

impl StderrReader {
    /// Starts reading.
    pub(super) fn start(stderr: Option<ChildStderr>, listener: StderrListener, redactor: Redactor) -> Self {
        let end = SharedEnd::default();
        let reading = stderr.map(|stderr| tokio::spawn(read(stderr, listener, Arc::clone(&end), redactor)));
        Self { end, reading }
    }

    /// Returns the end of the standard error of a program that has ended.
    pub(super) async fn end(&mut self) -> StderrEnd {
        if let Some(reading) = self.reading.take() {
            let _ = tokio::time::timeout(REST_TIMEOUT, reading).await;
        }
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Passes on the lines of a program's standard error, redacted and cut to [`MAX_LINE_BYTES`].
async fn read(stderr: impl AsyncRead + Unpin, listener: StderrListener, kept: SharedEnd, redactor: Redactor) {
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
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(&text);
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
    use rstest::rstest;

    fn end(lines: &[&str]) -> StderrEnd {
        let mut end = StderrEnd::default();
        for line in lines {
            end.push(line);
        }
        end
    }

    #[rstest]
    #[case::all(&["a", "b"], "It ended; the end of its stderr: a / b. Repair it.", "It ended. Repair it.")]
    #[case::the_last(&["a", "b", "c."], "It ended; the end of its stderr: b / c. Repair it.", "It ended. Repair it.")]
    #[case::not_printed(&[], "It ended; the end of its stderr: a. Repair it.", "It ended; the end of its stderr: a. Repair it.")]
    #[case::others(&["b"], "It ended; the end of its stderr: a. Repair it.", "It ended; the end of its stderr: a. Repair it.")]
    #[case::none(&["a"], "It ended. Repair it.", "It ended. Repair it.")]
    fn printed_lines_are_not_repeated(#[case] printed: &[&str], #[case] message: &str, #[case] expected: &str) {
        assert_eq!(end(printed).removed_from(message), expected);
    }

    #[test]
    fn a_printed_line_that_a_message_cuts_is_not_repeated() {
        let long = "x".repeat(MAX_KEPT_LINE_BYTES + 1);
        let message = format!("It ended{} Repair it.", end(&["a", &long]).clause());
        assert!(message.contains("stderr: a / xxx") && message.contains("x… Repair it."), "{message}");
        assert_eq!(end(&["other", "a", &long]).removed_from(&message), "It ended. Repair it.");
    }

    /// Returns the lines that the listener receives for a text on standard error.
    async fn passed_on(text: &str, redactor: Redactor) -> Vec<String> {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&passed);
        let listener: StderrListener = Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()));
        read(text.as_bytes(), listener, SharedEnd::default(), redactor).await;
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
