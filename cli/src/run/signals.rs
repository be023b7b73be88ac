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
    /// short time to end by itself, and is then ended. `last_line` is printed last.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn listen(stop: &Stop, screen: &Screen, last_line: String) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let each = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = each.map(signal);
        let mut each = [interrupt?, terminate?, hangup?];
        drop(entered);
        let (sender, second) = watch::channel(false);
        let last_line = LastLine { screen: screen.clone(), text: last_line, is_printed: Arc::default() };
        let (stop, own_last_line) = (stop.clone(), last_line.clone());
        let listen = move || {
            runtime.block_on(async {
                next(&mut each).await;
                stop.request(StopReason::Drain);
                let screen = own_last_line.screen.clone();
                let _ = on_thread(move || {
                    screen.print("The Job is parked after the current step. Press ^C again to stop at once.");
                });
                next(&mut each).await;
                let _ = sender.send(true);
                tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
                if let Some(printed) = on_thread(move || own_last_line.print()) {
                    let _ = printed.recv_timeout(PRINT_TIMEOUT);
                }
                std::process::exit(i32::from(Exit::Interrupted as u8));
            });
        };
        Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Self { second, last_line })
    }

    /// Waits for the second signal, and prints the last line.
    pub async fn second(mut self) {
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

/// Runs a function that may block on a new thread. The returned receiver gets a message at its end.
fn on_thread(act: impl FnOnce() + Send + 'static) -> Option<mpsc::Receiver<()>> {
    let (done, is_done) = mpsc::channel();
    let act = move || {
        act();
        let _ = done.send(());
    };
    Builder::new().spawn(act).ok().map(|_| is_done)
}

/// Waits for the next signal.
async fn next(each: &mut [Signal; 3]) {
    let [interrupt, terminate, hangup] = each;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
