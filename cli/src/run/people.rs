//! The person at the terminal, who decides on held calls, answers questions and sends messages.

mod dialogue;

use super::screen::Screen;
use crate::terminal::{self, Retry};
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_worker::driver::People;
use std::pin::Pin;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A terminal with a person.
#[derive(Debug)]
pub struct Terminal {
    screen: Screen,
    lines: Mutex<UnboundedReceiver<String>>,
    /// The person's name in the log.
    by: String,
}

impl Terminal {
    /// Opens the terminal of this process. Returns `None` if stdin or stderr is redirected.
    pub fn open(screen: &Screen) -> Option<Self> {
        if !terminal::is_interactive() {
            return None;
        }
        let by = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        let (sender, lines) = unbounded_channel();
        // A read from a terminal cannot be cancelled: the thread ends with the process.
        std::thread::spawn(move || {
            while let Some(line) = terminal::read_line() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let by = by.filter(|name| !name.is_empty()).unwrap_or_else(|| "the terminal".to_owned());
        Some(Self { screen: screen.clone(), lines: Mutex::new(lines), by })
    }

    /// Converts an unprompted line into a message.
    fn message(&self, line: String) -> Option<Statement> {
        (!line.trim().is_empty()).then(|| Statement::Message { text: line, by: self.by.clone(), nth: None })
    }

    async fn answer(&self, asks: &[HumanRequest<'_>]) -> Option<Statement> {
        let first = asks.first()?;
        let mut lines = self.lines.lock().await;
        // Lines from before the question neither answer nor approve anything.
        while let Ok(line) = lines.try_recv() {
            if let Some(message) = self.message(line) {
                return Some(message);
            }
        }
        self.screen.print(&dialogue::describe(first, asks.len() - 1));
        loop {
            let prompted = self.screen.prompt(&dialogue::prompt(first));
            let line = lines.recv().await?;
            prompted.finish();
            match dialogue::read(first, line.trim(), &self.by) {
                Ok(said) => return Some(said),
                Err(Retry(hint)) => self.screen.print(&hint),
            }
        }
    }
}

impl People for Terminal {
    fn are_here(&self) -> bool {
        true
    }

    fn take_statements(&self) -> Vec<Statement> {
        let Ok(mut lines) = self.lines.try_lock() else { return Vec::new() };
        let mut said = Vec::new();
        while let Ok(line) = lines.try_recv() {
            said.extend(self.message(line));
        }
        said
    }

    fn ask<'a>(&'a self, asks: &'a [HumanRequest<'a>]) -> Pin<Box<dyn Future<Output = Option<Statement>> + 'a>> {
        Box::pin(self.answer(asks))
    }
}
