//! The person at the terminal, who can decide on held calls, answer questions and send messages.

mod dialogue;

use super::screen::Screen;
use crate::terminal::{self, Retry};
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_worker::driver::People;
use std::pin::Pin;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The terminal of a person.
#[derive(Debug)]
pub struct Terminal {
    screen: Screen,
    /// The typed lines.
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
        let (sender, lines) = unbounded_channel();
        // A read from a terminal cannot be cancelled, so the thread ends with the process.
        std::thread::spawn(move || {
            while let Some(line) = terminal::read_line() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Some(Self { screen: screen.clone(), lines: Mutex::new(lines), by: terminal::user_name() })
    }

    /// Converts a line that was typed without a prompt into a message. Returns `None` for an empty line.
    fn message(&self, line: String) -> Option<Statement> {
        (!line.trim().is_empty()).then(|| Statement::Message { text: line, by: self.by.clone(), nth: None })
    }

    /// Shows the first request, and returns the answer. A line that was typed before the request is shown is a message and not an
    /// answer: the message is returned instead, and the engine asks again. Returns `None` at the end of the input.
    async fn answer(&self, requests: &[HumanRequest<'_>]) -> Option<Statement> {
        let request = requests.first()?;
        let mut lines = self.lines.lock().await;
        while let Ok(line) = lines.try_recv() {
            if let Some(message) = self.message(line) {
                return Some(message);
            }
        }
        self.screen.print(&dialogue::describe(request, requests.len() - 1));
        loop {
            let prompt = self.screen.prompt(&dialogue::prompt(request));
            let line = lines.recv().await?;
            prompt.finish();
            match dialogue::parse_answer(request, line.trim(), &self.by) {
                Ok(statement) => return Some(statement),
                Err(Retry(hint)) => self.screen.print(&hint),
            }
        }
    }
}

impl People for Terminal {
    fn can_be_asked(&self) -> bool {
        true
    }

    fn take_statements(&self) -> Vec<Statement> {
        let Ok(mut lines) = self.lines.try_lock() else { return Vec::new() };
        let mut statements = Vec::new();
        while let Ok(line) = lines.try_recv() {
            statements.extend(self.message(line));
        }
        statements
    }

    fn ask<'a>(&'a self, requests: &'a [HumanRequest<'a>]) -> Pin<Box<dyn Future<Output = Option<Statement>> + 'a>> {
        Box::pin(self.answer(requests))
    }
}
