//! A running process of the MCP server, and the processes that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The time for a process to end by itself after its input was closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A process in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Process {
    leader: Child,
    /// The id of the group. `None` if the process has no id, because another group may get the same id.
    group: Option<Pid>,
}

impl Process {
    /// Starts a process. Its standard error goes to the log of the pod.
    pub(crate) fn start(argv: &[String]) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let Some((name, arguments)) = argv.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut command = Command::new(name);
        command.args(arguments);
        Self::spawn(command)
    }

    /// Starts a command, with pipes as its standard input and output.
    pub(crate) fn spawn(mut command: Command) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut leader = command.spawn()?;
        let group = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        match (leader.stdin.take(), leader.stdout.take()) {
            (Some(input), Some(output)) => Ok((Self { leader, group }, input, output)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Returns the standard error, if it is a pipe.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Waits until the process has ended, ending it if necessary, and kills what is left of its group. Its input is closed already.
    /// Returns the status, for messages.
    pub(crate) async fn end(mut self) -> String {
        let mut ended = tokio::time::timeout(EXIT_TIMEOUT, self.leader.wait()).await;
        if ended.is_err() {
            self.signal(Signal::TERM);
            ended = tokio::time::timeout(EXIT_TIMEOUT, self.leader.wait()).await;
        }
        match ended {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "killed".to_owned(),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // This fails if no process is left, which is not an error.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
