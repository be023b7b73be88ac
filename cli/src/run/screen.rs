//! What a person sees while a Job runs: the events as plain lines, and below them, on a terminal, one line that lives.

mod doing;

use anstyle::{AnsiColor, Style};
use bloomery_crds::report::{Projection, Waiting};
use bloomery_worker::driver::Audience;
use bloomery_worker::progress::Onlooker;
use doing::Doing;
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
    ticks: usize,
    last: Last,
    doing: Doing,
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
        let doing = Doing::new(Instant::now());
        Self(Arc::new(Mutex::new(State { live, colours, ticks: 0, last: Last::Free, doing })))
    }

    /// Sees what goes on between events; nobody needs to, where no line lives.
    pub fn onlooker(&self) -> Onlooker {
        if !self.state().live {
            return Onlooker::default();
        }
        let screen = self.clone();
        Onlooker::new(move |progress| screen.state().doing.see(progress, Instant::now()))
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
        let line = on_one_line(line);
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
        let size = rustix::termios::tcgetwinsize(io::stderr());
        // A terminal that nobody has told its size says 0.
        let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(80);
        let line: String = self.line().chars().take(width.saturating_sub(1)).collect();
        let style = if self.colours { AnsiColor::Cyan.on_default() } else { Style::new() };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{CLEAR}{style}{line}{style:#}").and_then(|()| out.flush());
    }

    fn line(&self) -> String {
        let turning = TURNING.get(self.ticks % TURNING.len()).unwrap_or(&' ');
        on_one_line(&format!("{turning} {}", self.doing.line(Instant::now())))
    }
}

/// What somebody else says, without what would steer a terminal.
fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Audience for Screen {
    fn tell(&self, projection: Projection) {
        self.state().doing.tell(&projection, Instant::now());
    }

    fn waiting(&self, waiting: Option<Waiting>) {
        self.state().doing.wait(waiting.as_ref());
    }
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
    use bloomery_engine::event::Told;
    use bloomery_worker::progress::Progress;

    #[test]
    fn where_nobody_looks_on_nothing_is_drawn() {
        let screen = Screen::new(false, true);
        screen.state().draw();
        assert_eq!(screen.state().last, Last::Free);
    }

    #[test]
    fn what_a_server_tells_does_not_steer_the_terminal() {
        let screen = Screen::new(true, false);
        screen.state().doing.tell(&doing::tests::projection(), Instant::now());
        let onlooker = screen.onlooker();
        onlooker.sees(|| Progress::Called("act".into()));
        let message = Some("one\u{1b}[2J\ntwo".to_owned());
        onlooker.sees(|| Progress::Told(Told { message, ..Told::default() }));
        assert!(screen.state().line().starts_with("| act: one [2J two, 0 s"), "{}", screen.state().line());
    }
}
