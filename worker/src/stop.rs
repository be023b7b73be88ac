//! Asking a run to stop, from outside of it.

use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Why a run is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The pod was asked to end: a drain, a preemption, a deletion.
    Drain,
    /// The operator says that another attempt runs.
    Superseded,
}

/// A request to stop, and when it came.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Why.
    pub why: Why,
    /// Since when.
    pub since: Instant,
}

/// Carries the request to stop; all clones are one. The first request counts.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<Option<Asked>>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Stop {
    /// Asks the run to stop.
    pub fn ask(&self, why: Why) {
        self.0.send_if_modified(|asked| {
            let first = asked.is_none();
            asked.get_or_insert(Asked { why, since: Instant::now() });
            first
        });
    }

    /// Says whether the run is to stop.
    pub fn asked(&self) -> Option<Asked> {
        *self.0.borrow()
    }

    /// Waits until the run is to stop.
    pub async fn wait(&self) -> Asked {
        let mut requests = self.0.subscribe();
        loop {
            if let Some(asked) = *requests.borrow_and_update() {
                return asked;
            }
            // The sender is `self`, so the channel stays open.
            let _ = requests.changed().await;
        }
    }

    /// Turns SIGTERM and SIGINT into a request to stop. Without it a worker, which is the first process of its
    /// container, would not notice them.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn listen(&self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.ask(Why::Drain);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_is_a_request_to_stop_and_no_end() {
        let stop = Stop::default();
        stop.listen().unwrap();
        let kill = format!("kill -TERM {}", std::process::id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(stop.wait().await.why, Why::Drain);
    }

    #[tokio::test]
    async fn the_first_request_counts_and_all_clones_hear_it() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(stop.asked().is_none());
        other.ask(Why::Drain);
        other.ask(Why::Superseded);
        assert_eq!(stop.wait().await.why, Why::Drain);
        assert_eq!(stop.asked().map(|asked| asked.why), Some(Why::Drain));
    }
}
