//! What a program says on its standard error.

use super::Listener;
use bloomery_crds::text::{alters_display, bounded};
use bloomery_redact::Redactor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

/// The longest line that is passed on, in bytes.
const MAX_SAID: usize = 1024;

/// How many of the last lines are remembered, and how much of each, in bytes.
const LAST: (usize, usize) = (3, 120);

/// How long the last of it may take once the program has ended: others may hold its end of the pipe.
const AFTER: Duration = Duration::from_millis(500);

type Last = Arc<Mutex<VecDeque<String>>>;

/// What a program says: passed on, and the last of it remembered.
#[derive(Debug)]
pub(super) struct Said {
    last: Last,
    listening: Option<JoinHandle<()>>,
}

impl Said {
    /// Begins to listen.
    pub(super) fn of(errors: Option<ChildStderr>, listener: Listener, redactor: Redactor) -> Self {
        let last = Last::default();
        let listening = errors.map(|errors| tokio::spawn(listen(errors, listener, Arc::clone(&last), redactor)));
        Self { last, listening }
    }

    /// The last lines of a program that has ended.
    pub(super) async fn last(&mut self) -> Vec<String> {
        if let Some(listening) = self.listening.take() {
            let _ = tokio::time::timeout(AFTER, listening).await;
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

fn keep(last: &Last, said: &str) {
    let shown: String = said.chars().map(|c| if alters_display(c) { ' ' } else { c }).collect();
    if shown.trim().is_empty() {
        return;
    }
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    last.push_back(bounded(shown.trim(), LAST.1));
    if last.len() > LAST.0 {
        last.pop_front();
    }
}

/// Passes the lines of a program's standard error on; one that is too long is cut.
async fn listen(errors: impl AsyncRead + Unpin, listener: Listener, last: Last, redactor: Redactor) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        let Ok(read) = errors.fill_buf().await else { return };
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        // What begins in what is passed on is found whole.
        let room = (MAX_SAID + redactor.reach()).saturating_sub(line.len());
        line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        let (used, is_over) = (end.map_or(read.len(), |end| end + 1), read.is_empty());
        if end.is_some() || (is_over && !line.is_empty()) {
            let said = bounded(&redactor.beginning(&String::from_utf8_lossy(&line), MAX_SAID), MAX_SAID);
            listener(&said);
            keep(&last, &said);
            line.clear();
        }
        if is_over {
            return;
        }
        errors.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is passed on of a text that a program says.
    async fn passed_on(text: &str, redactor: Redactor) -> Vec<String> {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&passed);
        let listener: Listener = Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()));
        listen(text.as_bytes(), listener, Last::default(), redactor).await;
        passed.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn no_cut_leaves_a_part_of_a_secret() {
        let redactor = Redactor::default();
        let long = "0123456789".repeat(200);
        redactor.learn("key", b"sk-abcdefgh");
        redactor.learn("long", long.as_bytes());
        for before in (MAX_SAID - 15..MAX_SAID + 5).chain([0, 8 * 1024 - 5, 64 * 1024 - 5]) {
            for (value, part) in [("sk-abcdefgh", "sk-"), (long.as_str(), "0123")] {
                // What is taken out makes room for nothing that was cut.
                let text = format!("{}{value}{}{value}\nnext\n", "#".repeat(before), "#".repeat(300));
                let heard = passed_on(&text, redactor.clone()).await;
                assert!(heard.len() == 2 && heard[1] == "next", "{heard:?}");
                assert!(heard[0].len() <= MAX_SAID && !heard[0].contains(part), "{before}: {}", heard[0]);
            }
        }
        let key = "first-line-of-it\nsecond-line-of-it";
        redactor.learn("lines", key.as_bytes());
        assert_eq!(passed_on(key, redactor).await, ["[redacted: lines]", "[redacted: lines]"]);
    }
}
