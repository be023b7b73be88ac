//! The end of the bridge, and its log.

use futures::FutureExt;
use futures::future::Shared;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The time for running calls to end after the pod was asked to stop. Kubernetes kills the pod after 30 s.
const CALLS_TIMEOUT: Duration = Duration::from_secs(20);

/// Completes when the pod is asked to stop.
pub(crate) type Stopped = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Returns a future that completes on SIGTERM or SIGINT. As the first process of a container, the bridge would otherwise ignore them.
pub(crate) fn requested() -> Stopped {
    let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let received = async move {
        let wait = async |signal: std::io::Result<tokio::signal::unix::Signal>| match signal {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        };
        tokio::select! {
            () = wait(terminate) => {}
            () = wait(interrupt) => {}
        }
    };
    let received: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(received);
    received.shared()
}

/// Completes when calls had their time to end after `stopped`.
pub(crate) async fn overdue(stopped: Stopped) {
    stopped.await;
    tokio::time::sleep(CALLS_TIMEOUT).await;
}

/// Writes a line to the pod's log, which also has the standard error of the MCP server.
pub(crate) fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "bloomery-bridge: {line}");
}
