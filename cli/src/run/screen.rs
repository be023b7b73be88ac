//! What a person sees while a Job runs: the events as plain lines, and below them, on a terminal, one line that lives.

use anstyle::{AnsiColor, Style};
use bloomery_crds::report::{Projection, Waiting};
use bloomery_worker::driver::Audience;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the living line is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// Goes to the line's beginning and clears it.
const CLEAR: &str = "\r\x1b[2K";

const TURNING: [char; 4] = ['|', '/', '-', '\\'];

/// Standard error, shared by all who write to it.
#[derive(Debug, Clone)]
pub struct Screen(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Whether a person looks on: only then a line is drawn that is taken back.
    live: bool,
    colours: bool,
    began: Instant,
    ticks: usize,
    last: Last,
    doing: String,
    waiting: Option<String>,
}

/// Whose the last line of the terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nobody's: lines are written there.
    Free,
    /// The living line stands there.
    Ours,
    /// A person types there.
    Theirs,
}

impl Screen {
    /// Standard error as it is: a terminal, or not.
    pub fn of_stderr() -> Self {
        let smart = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        Self::new(io::stderr().is_terminal() && smart, colours)
    }

    fn new(live: bool, colours: bool) -> Self {
        let began = Instant::now();
        let doing = "Starting".to_owned();
        Self(Arc::new(Mutex::new(State { live, colours, began, ticks: 0, last: Last::Free, doing, waiting: None })))
    }

    /// Keeps the living line alive; never returns.
    pub async fn live(&self) {
        loop {
            tokio::time::sleep(TICK).await;
            let mut state = self.state();
            state.ticks += 1;
            state.draw();
        }
    }

    /// Writes lines of ours above the living line.
    pub fn say(&self, line: &str) {
        self.state().above(format!("{line}\n").as_bytes());
    }

    /// Writes a line of somebody else's, dimmed, and without what would steer a terminal.
    pub fn aside(&self, line: &str) {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut state = self.state();
        let dimmed =
            if state.colours { format!("{0}{line}{0:#}\n", Style::new().dimmed()) } else { format!("{line}\n") };
        state.above(dimmed.as_bytes());
    }

    /// Leaves the last line to a person, behind a prompt.
    pub fn prompt(&self, prompt: &str) {
        let mut state = self.state();
        state.above(prompt.as_bytes());
        state.last = Last::Theirs;
    }

    /// The person has ended the line.
    pub fn typed(&self) {
        self.state().last = Last::Free;
    }

    /// Takes the living line away for good.
    pub fn close(&self) {
        let mut state = self.state();
        state.above(b"");
        state.live = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes above the living line. Nobody may be looking, which is no reason to stop.
    fn above(&mut self, lines: &[u8]) {
        let mut out = io::stderr().lock();
        let _ = match std::mem::replace(&mut self.last, Last::Free) {
            Last::Free => Ok(()),
            Last::Ours => out.write_all(CLEAR.as_bytes()),
            Last::Theirs => out.write_all(b"\n"),
        };
        let _ = out.write_all(lines).and_then(|()| out.flush());
    }

    fn draw(&mut self) {
        if !self.live || self.last == Last::Theirs {
            return;
        }
        self.last = Last::Ours;
        let width = rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
        let line: String = self.line().chars().take(width.saturating_sub(1)).collect();
        let style = if self.colours { AnsiColor::Cyan.on_default() } else { Style::new() };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{CLEAR}{style}{line}{style:#}").and_then(|()| out.flush());
    }

    fn line(&self) -> String {
        let turning = TURNING.get(self.ticks % TURNING.len()).unwrap_or(&' ');
        let (doing, seconds) = (self.waiting.as_ref().unwrap_or(&self.doing), self.began.elapsed().as_secs());
        format!("{turning} {doing}, {seconds} s (^C parks)")
    }
}

impl Audience for Screen {
    fn tell(&self, projection: Projection) {
        self.state().doing = doing(&projection);
    }

    fn waiting(&self, waiting: Option<Waiting>) {
        self.state().waiting = waiting.map(|waiting| match waiting {
            Waiting::SecretMissing { key, .. } => format!("Waiting for the key {key}"),
            Waiting::McpUnavailable { .. } => "Waiting for the MCP server".to_owned(),
            Waiting::ModelUnavailable { .. } => "Waiting for the model".to_owned(),
        });
    }
}

fn doing(projection: &Projection) -> String {
    let usage = &projection.usage;
    let (steps, tokens) = (usage.llm_calls.plan, usage.input_tokens + usage.output_tokens);
    format!("{}: step {}, {} tool calls, {tokens} tokens", projection.phase, steps + 1, usage.tool_calls)
}

/// The lines of events, and those of diagnostics.
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state().above(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::{Gates, LogPosition, Usage};

    fn projection() -> Projection {
        let mut usage = Usage { tool_calls: 2, input_tokens: 100, output_tokens: 20, ..Usage::default() };
        usage.llm_calls.plan = 3;
        Projection {
            phase: Phase::Running,
            outcome: None,
            result: None,
            gates: Gates::default(),
            workflows: Vec::new(),
            waiting_for: None,
            remarks: Vec::new(),
            usage,
            log: LogPosition { path: "jobs/k".into(), events: 1, head: Digest::of_bytes(b"") },
        }
    }

    #[test]
    fn the_living_line_says_what_is_done_and_what_is_waited_for() {
        let screen = Screen::new(false, false);
        screen.tell(projection());
        assert_eq!(screen.state().line(), "| Running: step 4, 2 tool calls, 120 tokens, 0 s (^C parks)");
        screen.waiting(Some(Waiting::McpUnavailable { message: "refused".into() }));
        assert!(screen.state().line().contains("Waiting for the MCP server"));
        screen.waiting(None);
        assert!(screen.state().line().contains("Running"));
    }

    #[test]
    fn where_nobody_looks_on_nothing_is_drawn() {
        let screen = Screen::new(false, true);
        screen.state().draw();
        assert_eq!(screen.state().last, Last::Free);
    }
}
