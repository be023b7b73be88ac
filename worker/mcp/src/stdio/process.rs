//! A running program and the processes that it started.

use super::stderr::StderrReader;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::Mutex;

/// The time for a program to end by itself after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A handle to a program. Dropping the last handle kills the program.
#[derive(Debug, Clone)]
pub(crate) struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    group: Mutex<Group>,
    /// Whether the program closed its input or its output before the worker did.
    has_closed: AtomicBool,
}

impl Process {
    pub(super) fn new(leader: Child, stderr: StderrReader) -> Self {
        let number = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Mutex::new(Group { leader, number, stderr });
        Self(Arc::new(Shared { group, has_closed: AtomicBool::default() }))
    }

    /// Records that the program closed its input or its output. It most likely ends soon.
    pub(super) fn note_closed(&self) {
        self.0.has_closed.store(true, Ordering::Relaxed);
    }

    /// Waits up to [`EXIT_TIMEOUT`] for the program to end, and then kills its process group. Returns its status if it ended by itself.
    pub(super) async fn end(&self) -> Option<ExitStatus> {
        self.0.group.lock().await.end().await
    }

    /// Describes the exit status of a program that closed a pipe, and the end of its standard error. Ends the program first,
    /// like [`Process::end`].
    ///
    /// Returns `None` without ending the program if it closed no pipe. Also returns `None` if the worker had to kill it.
    pub(crate) async fn exit_description(&self) -> Option<String> {
        if !self.0.has_closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut group = self.0.group.lock().await;
        let status = group.end().await?;
        let stderr = group.stderr.end().await.clause();
        Some(format!("the program ended ({status}){stderr}"))
    }
}

#[derive(Debug)]
struct Group {
    leader: Child,
    /// The id of the process group, which is the id of its leader. `None` after the group was killed.
    number: Option<Pid>,
    stderr: StderrReader,
}

impl Group {
    /// Ends the group. The id is not used afterwards, because another group may get the same id.
    async fn end(&mut self) -> Option<ExitStatus> {
        let ended = tokio::time::timeout(EXIT_TIMEOUT, self.leader.wait()).await;
        self.kill();
        ended.ok()?.ok()
    }

    fn kill(&mut self) {
        if let Some(number) = self.number.take() {
            // This fails if no process is left, which is not an error.
            let _ = kill_process_group(number, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
