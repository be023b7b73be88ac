//! Handles the signals that end the process: the first one parks the Job, the second one stops the process at once.
//!
//! A separate thread handles signals, because the thread of the Job may be blocked by output that nobody reads.

use super::screen::Screen;
use crate::exit::Exit;
use bloomery_worker::stop::{Stop, StopReason};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The time in which the process can end by itself after the second signal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// The timeout for printing the last line.
const PRINT_TIMEOUT: Duration = Duration::from_millis(200);

/// The signals that end the process.
#[derive(Debug)]
pub struct Signals {
    /// True after the second signal.
    second: watch::Receiver<bool>,
    last_line: LastLine,
}

/// The last line of the output. It is printed once, by the thread of the Job or the thread of the signals.
#[derive(Debug, Clone)]
struct LastLine {
    screen: Screen,
    text: String,
    is_printed: Arc<AtomicBool>,
}

impl Signals {
    /// Starts the thread that handles signals. The first signal requests a stop. After the second signal, the process has a
    /// short time to end by itself. Then the thread ends it, and prints `last_line` before, unless it is printed already.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn listen(stop: &Stop, screen: &Screen, last_line: String) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        // A signal belongs to the runtime that is entered when the signal is registered.
        let entered = runtime.enter();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let mut signals = [interrupt?, terminate?, hangup?];
        drop(entered);
        let (sender, second) = watch::channel(false);
        let last_line = LastLine { screen: screen.clone(), text: last_line, is_printed: Arc::default() };
        let (stop, own_last_line) = (stop.clone(), last_line.clone());
        let listen = move || {
            runtime.block_on(async {
                next_signal(&mut signals).await;
                stop.request(StopReason::Drain);
                let screen = own_last_line.screen.clone();
                let _ = run_on_thread(move || {
                    screen.print("The Job is parked after the current step. Press ^C again to stop at once.");
                });
                next_signal(&mut signals).await;
                let _ = sender.send(true);
                tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
                if let Some(done) = run_on_thread(move || own_last_line.print()) {
                    let _ = done.recv_timeout(PRINT_TIMEOUT);
                }
                std::process::exit(i32::from(Exit::Interrupted as u8));
            });
        };
        Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Self { second, last_line })
    }

    /// Waits for the second signal, and prints the last line.
    pub async fn wait_for_second(mut self) {
        // The sender exists as long as the process.
        let _ = self.second.wait_for(|second| *second).await;
        self.last_line.print();
    }
}

impl LastLine {
    /// Prints the line, unless it is printed already.
    fn print(&self) {
        if !self.is_printed.swap(true, Ordering::Relaxed) {
            self.screen.print(&self.text);
        }
    }
}

/// Runs a function on a new thread, because the function may block. The returned receiver gets a message when the function has
/// returned. Returns `None` if no thread can be started.
fn run_on_thread(act: impl FnOnce() + Send + 'static) -> Option<mpsc::Receiver<()>> {
    let (sender, receiver) = mpsc::channel();
    let act = move || {
        act();
        let _ = sender.send(());
    };
    Builder::new().spawn(act).ok().map(|_| receiver)
}

/// Waits for the next signal.
async fn next_signal(signals: &mut [Signal; 3]) {
    let [interrupt, terminate, hangup] = signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
