//! Keeps the standard error of a program until something fails.

use crate::program::StderrListener;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of lines that are kept.
const MAX_LINES: usize = 100;

/// The lines of a program's standard error. Until something fails, only the last lines are kept, because servers print many lines that
/// people need not see. After a failure, all lines are passed on at once. Clones share the lines.
#[derive(Clone)]
pub(crate) struct StderrLog(Arc<Shared>);

struct Shared {
    /// The kept lines, until something fails.
    kept: Mutex<Option<VecDeque<String>>>,
    listener: StderrListener,
}

impl StderrLog {
    /// Creates a log that passes lines on to `listener`.
    pub(crate) fn new(listener: StderrListener) -> Self {
        Self(Arc::new(Shared { kept: Mutex::new(Some(VecDeque::new())), listener }))
    }

    /// Adds a line.
    pub(crate) fn push(&self, line: &str) {
        match self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(kept) => {
                if kept.len() == MAX_LINES {
                    kept.pop_front();
                }
                kept.push_back(line.to_owned());
            }
            None => (self.0.listener)(line),
        }
    }

    /// Passes on the kept lines, because something failed, and from now on every line.
    pub(crate) fn show(&self) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take().into_iter().flatten().for_each(|line| (self.0.listener)(&line));
    }
}

impl fmt::Debug for StderrLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_when_something_fails_and_later_lines_at_once() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&shown);
        let log = StderrLog::new(Arc::new(move |line| lines.lock().unwrap().push(line.to_owned())));
        (0..=MAX_LINES).for_each(|n| log.push(&n.to_string()));
        assert!(shown.lock().unwrap().is_empty());
        log.show();
        log.push("later");
        log.show();
        let expected: Vec<_> = (1..=MAX_LINES).map(|n| n.to_string()).chain(["later".to_owned()]).collect();
        assert_eq!(*shown.lock().unwrap(), expected);
    }
}
