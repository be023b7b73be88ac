//! Signals from the person at the terminal or the system.
//!
//! A separate thread handles signals, because the thread of the Job may be blocked by unread output.

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

/// The time that the process has to end by itself after the second signal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// The timeout for printing the last line.
const PRINT_TIMEOUT: Duration = Duration::from_millis(200);

/// The signals that ask the process to end.
#[derive(Debug)]
pub struct Signals {
    second: watch::Receiver<bool>,
    end: End,
}

/// The last line, printed once.
#[derive(Debug, Clone)]
struct End {
    screen: Screen,
    line: String,
    is_said: Arc<AtomicBool>,
}

impl Signals {
    /// Turns the first signal into a request to stop. The second one ends the process and prints `line`, after a short delay for
    /// an orderly end.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn listen(stop: &Stop, screen: &Screen, line: String) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let each = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = each.map(signal);
        let mut each = [interrupt?, terminate?, hangup?];
        drop(entered);
        let (tell, second) = watch::channel(false);
        let end = End { screen: screen.clone(), line, is_said: Arc::default() };
        let (stop, last) = (stop.clone(), end.clone());
        let listen = move || {
            runtime.block_on(async {
                next(&mut each).await;
                stop.request(StopReason::Drain);
                let screen = last.screen.clone();
                let _ = on_thread(move || screen.print("Parking after the current step. ^C again stops at once."));
                next(&mut each).await;
                let _ = tell.send(true);
                tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
                if let Some(said) = on_thread(move || last.say()) {
                    let _ = said.recv_timeout(PRINT_TIMEOUT);
                }
                std::process::exit(i32::from(Exit::Interrupted as u8));
            });
        };
        Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Self { second, end })
    }

    /// Waits for the second signal, and prints the last line.
    pub async fn second(mut self) {
        // The sending thread lives as long as the process.
        let _ = self.second.wait_for(|second| *second).await;
        self.end.say();
    }
}

impl End {
    fn say(&self) {
        if !self.is_said.swap(true, Ordering::Relaxed) {
            self.screen.print(&self.line);
        }
    }
}

/// Runs a function that may block on a thread, and returns a receiver of its end.
fn on_thread(act: impl FnOnce() + Send + 'static) -> Option<mpsc::Receiver<()>> {
    let (done, is_done) = mpsc::channel();
    let act = move || {
        act();
        let _ = done.send(());
    };
    Builder::new().spawn(act).ok().map(|_| is_done)
}

async fn next(each: &mut [Signal; 3]) {
    let [interrupt, terminate, hangup] = each;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
