//! Prints the conversation to stdout, for `kubectl logs`: one line for each durable event.

mod background_writer;
mod text;

pub use background_writer::BackgroundWriter;
pub use text::event_of_line;

use bloomery_engine::Event;
use bloomery_engine::event::CallId;
use bloomery_engine::line::Entry;
use std::collections::BTreeMap;
use std::io::Write;

/// The format in which events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Time, sequence number, name and gist, for people.
    #[default]
    Text,
    /// The lines of the log, unchanged.
    Json,
}

/// Prints events.
pub struct Printer {
    format: Format,
    out: Box<dyn Write + Send>,
    tools: BTreeMap<CallId, String>,
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Printer {
    /// Creates a printer to `out`, which is stdout in a pod. `out` may buffer lines until [`Printer::close`].
    pub fn new(format: Format, out: Box<dyn Write + Send>) -> Self {
        Self { format, out, tools: BTreeMap::new() }
    }

    /// Registers the tool of a call, so that the lines of later events can name it.
    pub fn add_call(&mut self, call: &CallId, tool: &str) {
        self.tools.insert(call.clone(), tool.to_owned());
    }

    /// Returns an event as one line for people, with the line feed. Pass the events in the order of the log: the line of a call names its
    /// tool, which only the first event of the call contains.
    pub fn text_line(&mut self, entry: &Entry) -> String {
        match &entry.event {
            // The calls of the previous answer are finished. Removing them bounds the map.
            Event::ModelAnswered { .. } => self.tools.clear(),
            Event::ToolRequested { call, tool, .. } => self.add_call(call, tool),
            _ => {}
        }
        text::line(entry, &self.tools)
    }

    /// Appends an event to `lines` in the printer's format: its line for people, or its line of the log.
    pub fn format(&self, lines: &mut String, text_line: &str, log_line: &str) {
        match self.format {
            Format::Text => lines.push_str(text_line),
            Format::Json => {
                lines.push_str(log_line);
                lines.push('\n');
            }
        }
    }

    /// Prints lines. Errors are ignored, because a closed output must not stop the Job.
    pub fn print(&mut self, lines: &str) {
        let _ = self.out.write_all(lines.as_bytes());
    }

    /// Waits until everything is printed.
    pub fn close(&mut self) {
        let _ = self.out.flush();
    }
}
