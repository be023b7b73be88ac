//! A program and all that it started, until nobody holds it any more.

use super::said::Said;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::Mutex;

/// How long a program may take to end by itself once its input is closed.
const GOODBYE: Duration = Duration::from_secs(1);

/// A program that was started. It is killed with the last clone.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    group: Mutex<Group>,
    /// It has closed its input or its output, before we did.
    has_closed: AtomicBool,
}

impl Process {
    pub(super) fn of(leader: Child, said: Said) -> Self {
        let number = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Mutex::new(Group { leader, number, said });
        Self(Arc::new(Shared { group, has_closed: AtomicBool::default() }))
    }

    /// Notes that it has closed its input or its output: it ends, most likely.
    pub(super) fn note_closed(&self) {
        self.0.has_closed.store(true, Ordering::Relaxed);
    }

    /// Waits a moment for the program to end by itself, and kills what is left of it; gives how it ended, if by itself.
    pub(super) async fn end(&self) -> Option<ExitStatus> {
        self.0.group.lock().await.end().await
    }

    /// The same, in words, with the last that it said: nothing where it did not end by itself. Many end when their input
    /// is closed: who has not closed anything before us is none of them.
    pub(in crate::mcp) async fn obituary(&self) -> Option<String> {
        if !self.0.has_closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut group = self.0.group.lock().await;
        let status = group.end().await?;
        let last = group.said.last().await;
        let said = if last.is_empty() { String::new() } else { format!(" and said last: {}", last.join(" / ")) };
        Some(format!("the program ended ({status}){said}"))
    }
}

#[derive(Debug)]
struct Group {
    leader: Child,
    /// The number of the group, which is its leader's, until it is killed.
    number: Option<Pid>,
    said: Said,
}

impl Group {
    /// Once nothing is left, another group may come to bear the number.
    async fn end(&mut self) -> Option<ExitStatus> {
        let ended = tokio::time::timeout(GOODBYE, self.leader.wait()).await;
        self.kill();
        ended.ok()?.ok()
    }

    fn kill(&mut self) {
        if let Some(number) = self.number.take() {
            // It fails where nothing is left.
            let _ = kill_process_group(number, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
