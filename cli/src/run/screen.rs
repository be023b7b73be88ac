//! The output on stderr while a Job runs. Events are printed as lines. A terminal has a status line below them.

mod activity;

use super::steps::StepLines;
use crate::option_names::with_options_of_commands;
use crate::text;
use activity::Activity;
use anstyle::{AnsiColor, Style};
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_embed::run::view::RunView;
use bloomery_http::progress::ProgressObserver;
use bloomery_mcp::{StderrEnd, StderrListener};
use bloomery_worker::driver::Observer;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which the status line is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Moves the cursor to the beginning of the line, and clears the line.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Turns line wrapping off, so that the terminal cuts off a status line that is too wide. This program cannot do that, because
/// it does not know the widths of characters.
const WRAPPING_OFF: &str = "\x1b[?7l";
/// Turns line wrapping on.
const WRAPPING_ON: &str = "\x1b[?7h";

/// The frames of the spinner.
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// Standard error. Clones share its state.
#[derive(Debug, Clone)]
pub struct Screen(Arc<Mutex<State>>);

/// The state of the terminal, and the texts of its last line.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of the output, and any may be true")]
struct State {
    /// False if stderr cannot show a status line, or the screen is closed.
    has_status_line: bool,
    /// True if only answers, warnings and errors are shown.
    is_quiet: bool,
    /// False if the events of the Job are printed elsewhere.
    shows_events: bool,
    /// What the Job waited for last, if there is no status line.
    last_wait: Option<String>,
    /// The end of the printed stderr of programs.
    program_end: StderrEnd,
    colours: bool,
    /// The number of redraw intervals so far. It selects the frame of the spinner.
    redraws: usize,
    last_line: LastLine,
    /// The text of the current prompt.
    prompt: String,
    activity: Activity,
}

/// The use of the last line of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastLine {
    /// Empty.
    Free,
    /// The status line.
    Status,
    /// A prompt, after which a person types.
    Prompt,
}

impl Screen {
    /// Creates the screen for stderr. A quiet one shows no progress.
    pub fn for_stderr(is_quiet: bool) -> Self {
        let is_capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        let screen = Self::new(io::stderr().is_terminal() && is_capable && !is_quiet, colours);
        screen.state().is_quiet = is_quiet;
        screen
    }

    fn new(has_status_line: bool, colours: bool) -> Self {
        let activity = Activity::new(Instant::now());
        Self(Arc::new(Mutex::new(State {
            has_status_line,
            is_quiet: false,
            shows_events: true,
            last_wait: None,
            program_end: StderrEnd::default(),
            colours,
            redraws: 0,
            last_line: LastLine::Free,
            prompt: String::new(),
            activity,
        })))
    }

    /// Returns the screen for a Job whose events are printed elsewhere.
    #[must_use]
    pub fn without_events(self) -> Self {
        self.state().shows_events = false;
        self
    }

    /// Redraws the status line at each interval. Never returns.
    pub async fn run_status_line(&self) {
        loop {
            tokio::time::sleep(REDRAW_INTERVAL).await;
            let mut state = self.state();
            state.redraws += 1;
            state.draw();
        }
    }

    /// Prints lines above the status line.
    pub fn print(&self, lines: &str) {
        self.state().print_above(format!("{}\n", text::sanitized_lines(&with_options_of_commands(lines))).as_bytes());
    }

    /// Removes the lines of a program's stderr that were printed from a message about its end.
    pub fn without_printed_lines(&self, message: &str) -> String {
        self.state().program_end.removed_from(message)
    }

    /// Prints a line of a program's stderr dimmed, without its control characters.
    fn print_program_line(&self, line: &str) {
        let line = text::sanitized_line(line);
        let mut state = self.state();
        state.program_end.push(&line);
        let dimmed =
            if state.colours { format!("{0}{line}{0:#}\n", Style::new().dimmed()) } else { format!("{line}\n") };
        state.print_above(dimmed.as_bytes());
    }

    /// Shows a prompt in the last line, until the returned value is finished or dropped.
    pub fn prompt(&self, prompt: &str) -> Prompt<'_> {
        let mut state = self.state();
        state.print_above(prompt.as_bytes());
        (state.last_line, state.prompt) = (LastLine::Prompt, prompt.to_owned());
        Prompt(self)
    }

    /// Removes the status line permanently.
    pub fn close(&self) {
        let mut state = self.state();
        state.end_prompt();
        state.print_above(b"");
        state.has_status_line = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prompt. Dropping it ends the prompt.
#[derive(Debug)]
pub struct Prompt<'a>(&'a Screen);

impl Prompt<'_> {
    /// Ends the prompt after the person has typed a line. The typed line break has ended the line of the prompt.
    pub fn finish(self) {
        self.0.state().last_line = LastLine::Free;
    }
}

impl Drop for Prompt<'_> {
    fn drop(&mut self) {
        self.0.state().end_prompt();
    }
}

impl State {
    /// Writes above the status line or the prompt.
    fn print_above(&mut self, lines: &[u8]) {
        write(&self.framed(lines));
        if self.last_line == LastLine::Status {
            self.last_line = LastLine::Free;
        }
    }

    /// Returns the bytes that print lines and restore the prompt below them. Text that a person has typed after the prompt is
    /// not printed again, but stays in the input buffer of the terminal.
    fn framed(&self, lines: &[u8]) -> Vec<u8> {
        match self.last_line {
            LastLine::Free => lines.to_vec(),
            LastLine::Status => [CLEAR_LINE.as_bytes(), lines].concat(),
            LastLine::Prompt => [b"\n".as_slice(), lines, self.prompt.as_bytes()].concat(),
        }
    }

    /// Ends a prompt that was not answered. Later lines are printed below it.
    fn end_prompt(&mut self) {
        if self.last_line == LastLine::Prompt {
            self.last_line = LastLine::Free;
            write(b"\n");
        }
    }

    /// Returns the line about a new wait, if there is no status line to show it.
    fn announced_wait(&mut self) -> Option<String> {
        let wait = self.activity.waiting().filter(|_| !self.has_status_line && !self.is_quiet)?.to_owned();
        let is_new = self.last_wait.as_ref() != Some(&wait);
        self.last_wait = Some(wait.clone());
        is_new.then(|| text::sanitized_line(&wait))
    }

    /// Draws the status line, unless a prompt has its place.
    fn draw(&mut self) {
        if !self.has_status_line || self.last_line == LastLine::Prompt {
            return;
        }
        self.last_line = LastLine::Status;
        let size = rustix::termios::tcgetwinsize(io::stderr());
        // A terminal that does not know its size reports 0. It is treated as one of the usual 80 columns.
        let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(80);
        let line: String = self.line().chars().take(width.saturating_sub(1)).collect();
        let style = if self.colours { AnsiColor::Cyan.on_default() } else { Style::new() };
        write(format!("{CLEAR_LINE}{WRAPPING_OFF}{style}{line}{style:#}{WRAPPING_ON}").as_bytes());
    }

    /// Returns the text of the status line.
    fn line(&self) -> String {
        let spinner = SPINNER.get(self.redraws % SPINNER.len()).unwrap_or(&' ');
        text::sanitized_line(&format!("{spinner} {}", self.activity.line(Instant::now())))
    }
}

/// Writes to stderr. Errors are ignored, because the Job continues even if nobody reads its output.
fn write(bytes: &[u8]) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

impl Observer for Screen {
    fn state_changed(&self, projection: Projection) {
        self.state().activity.set_projection(&projection, Instant::now());
    }

    fn waiting(&self, waiting: Option<ExternalWait>) {
        let mut state = self.state();
        state.activity.set_waiting(waiting.as_ref());
        if let Some(line) = state.announced_wait() {
            state.print_above(format!("{line}\n").as_bytes());
        }
    }
}

impl RunView for Screen {
    fn print(&self, lines: &str) {
        Self::print(self, lines);
    }

    fn print_progress(&self, lines: &str) {
        if !self.state().is_quiet {
            self.print(lines);
        }
    }

    /// Returns an observer for the status line. Without a status line, it does nothing.
    fn progress(&self) -> ProgressObserver {
        if !self.state().has_status_line {
            return ProgressObserver::default();
        }
        let screen = self.clone();
        ProgressObserver::new(move |progress| screen.state().activity.observe(progress, Instant::now()))
    }

    fn program_output(&self) -> StderrListener {
        let screen = self.clone();
        Arc::new(move |line: &str| screen.print_program_line(line))
    }

    fn events(&self) -> Box<dyn Write + Send> {
        let State { is_quiet, shows_events, .. } = *self.state();
        if is_quiet || !shows_events { Box::new(io::sink()) } else { Box::new(StepLines::new(self.clone())) }
    }
}

/// Prints the lines of events and diagnostics.
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state().print_above(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::event::ToolProgress;
    use bloomery_http::progress::Progress;

    #[test]
    fn without_a_terminal_no_status_line_is_drawn() {
        let screen = Screen::new(false, true);
        screen.state().draw();
        assert_eq!(screen.state().last_line, LastLine::Free);
    }

    #[test]
    fn without_a_status_line_each_wait_is_announced_once() {
        let screen = Screen::new(false, false);
        let wait = || Some(ExternalWait::ModelUnavailable { message: "busy".into() });
        let mut state = screen.state();
        let mut announced = |waiting: Option<ExternalWait>| {
            state.activity.set_waiting(waiting.as_ref());
            state.announced_wait()
        };
        let shown = [wait(), wait(), None, wait()].map(&mut announced);
        assert_eq!(shown, [Some("Waiting for the model".to_owned()), None, None, None]);
        drop(state);
        screen.state().is_quiet = true;
        screen.state().activity.set_waiting(Some(&ExternalWait::McpUnavailable { message: "down".into() }));
        assert_eq!(screen.state().announced_wait(), None);
    }

    #[test]
    fn a_message_does_not_repeat_a_long_line_of_a_program() {
        let (screen, line) = (Screen::new(false, false), "x".repeat(500));
        screen.print_program_line(&line);
        let mut end = StderrEnd::default();
        end.push(&line);
        let message = format!("It ended{} Repair it.", end.clause());
        assert_eq!(screen.without_printed_lines(&message), "It ended. Repair it.");
    }

    #[test]
    fn lines_printed_during_a_prompt_are_above_it() {
        let screen = Screen::new(true, false);
        let prompted = screen.prompt("Your answer: ");
        assert_eq!(screen.state().framed(b"one\n"), b"\none\nYour answer: ");
        screen.print("one");
        screen.state().draw();
        assert_eq!(screen.state().last_line, LastLine::Prompt);
        drop(prompted);
        assert_eq!(screen.state().last_line, LastLine::Free);
        screen.prompt("Your answer: ").finish();
        assert_eq!(screen.state().framed(b"two\n"), b"two\n");
    }

    #[test]
    fn control_characters_in_progress_messages_are_removed() {
        let screen = Screen::new(true, false);
        screen.state().activity.set_projection(&activity::tests::projection(), Instant::now());
        let observer = screen.progress();
        observer.notify(|| Progress::ToolCalled("act".into()));
        let message = Some("one\u{1b}[2J\ntwo\u{202e}".to_owned());
        observer.notify(|| Progress::ToolProgressed(ToolProgress { message, ..ToolProgress::default() }));
        assert!(screen.state().line().starts_with("| act: one [2J two , 0 s"), "{}", screen.state().line());
    }
}
