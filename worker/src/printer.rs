//! The conversation on stdout, for `kubectl logs`: one line an event, once it is durable.

mod background_writer;
mod text;

pub use background_writer::BackgroundWriter;

use bloomery_engine::Event;
use bloomery_engine::event::CallId;
use bloomery_engine::line::Entry;
use std::collections::BTreeMap;
use std::io::Write;

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Time, seq, name and the gist, for people.
    #[default]
    Text,
    /// The lines of the log as they are.
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
    /// Prints to `out`, which is stdout in a pod, and may keep lines back until [`Printer::close`].
    pub fn new(format: Format, out: Box<dyn Write + Send>) -> Self {
        Self { format, out, tools: BTreeMap::new() }
    }

    /// Learns which tool a call is of, so that later events of the call can say so.
    pub fn learn(&mut self, call: &CallId, tool: &str) {
        self.tools.insert(call.clone(), tool.to_owned());
    }

    /// The line of an event for people, line feed included. Events are told in their order: later ones name what earlier
    /// ones have told.
    pub fn gist(&mut self, entry: &Entry) -> String {
        match &entry.event {
            // The calls of the answer before are over. Remembered for good, they would grow with the conversation.
            Event::ModelAnswered { .. } => self.tools.clear(),
            Event::ToolRequested { call, tool, .. } => self.learn(call, tool),
            _ => {}
        }
        text::line(entry, &self.tools)
    }

    /// Puts what is printed of an event behind `lines`: its gist, or its line of the log.
    pub fn put(&self, lines: &mut String, gist: &str, line: &str) {
        match self.format {
            Format::Text => lines.push_str(gist),
            Format::Json => {
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }

    /// Prints lines. Nobody may be listening, which is no reason to stop.
    pub fn print(&mut self, lines: &str) {
        let _ = self.out.write_all(lines.as_bytes());
    }

    /// Sees that all is printed.
    pub fn close(&mut self) {
        let _ = self.out.flush();
    }
}
