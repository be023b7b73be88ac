//! Polls for files of other processes: one thread looks for all files of an interval.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The interval at which the files are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The files that callers wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct Polls(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    awaited: Vec<AwaitedFile>,
    /// Whether a task looks for the files.
    is_polling: bool,
}

#[derive(Debug)]
struct AwaitedFile {
    file: PathBuf,
    found: oneshot::Sender<()>,
}

impl Polls {
    /// Waits until a file exists, or cannot be looked for: the caller learns why when it opens the file. Also returns if the runtime of
    /// tokio ends.
    pub(super) async fn wait_for(&self, file: PathBuf) {
        let (found, receiver) = oneshot::channel();
        if self.state().add(AwaitedFile { file, found }) {
            tokio::spawn(self.clone().poll());
        }
        let _ = receiver.await;
    }

    /// Looks for the files until no caller has waited for an interval.
    async fn poll(self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let Some(awaited) = self.state().take() else { return };
            let look = move || awaited.into_iter().filter_map(AwaitedFile::look).collect();
            let missing: Vec<AwaitedFile> = tokio::task::spawn_blocking(look).await.unwrap_or_default();
            self.state().awaited.extend(missing);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a file. Returns whether a task must begin to look for the files.
    fn add(&mut self, file: AwaitedFile) -> bool {
        self.awaited.push(file);
        !std::mem::replace(&mut self.is_polling, true)
    }

    /// Takes the files, to look for them. Returns `None` if there are none: the task must end.
    fn take(&mut self) -> Option<Vec<AwaitedFile>> {
        self.is_polling = !self.awaited.is_empty();
        self.is_polling.then(|| std::mem::take(&mut self.awaited))
    }
}

impl AwaitedFile {
    /// Looks for the file. Returns it if it is missing, and its caller still waits.
    fn look(self) -> Option<Self> {
        if self.found.is_closed() {
            return None;
        }
        if is_missing(&self.file) {
            return Some(self);
        }
        // The caller may have stopped waiting.
        let _ = self.found.send(());
        None
    }
}

/// Returns whether a file is certainly missing.
pub(super) fn is_missing(file: &Path) -> bool {
    file.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::fs;

    #[tokio::test]
    async fn a_caller_waits_until_its_file_exists() {
        let dir = tempfile::tempdir().unwrap();
        let polls = Polls::default();
        let (first, second) = (dir.path().join("1"), dir.path().join("2"));
        let mut waits = [Box::pin(polls.wait_for(first.clone())), Box::pin(polls.wait_for(second.clone()))];
        assert!(waits.iter_mut().all(|wait| wait.now_or_never().is_none()));
        fs::write(&second, "").unwrap();
        waits[1].as_mut().await;
        assert!(waits[0].as_mut().now_or_never().is_none());
        fs::write(&first, "").unwrap();
        waits[0].as_mut().await;
    }

    #[tokio::test]
    async fn polling_ends_with_the_last_caller_and_begins_again() {
        let dir = tempfile::tempdir().unwrap();
        let polls = Polls::default();
        assert!(polls.wait_for(dir.path().join("never")).now_or_never().is_none());
        while polls.state().is_polling {
            tokio::task::yield_now().await;
        }
        assert!(polls.state().awaited.is_empty());
        polls.wait_for(dir.path().to_owned()).await;
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_looked_for_counts_as_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        Polls::default().wait_for(file.join("in-a-file")).await;
    }
}
