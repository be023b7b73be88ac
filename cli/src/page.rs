//! Pages for people: labels on the left, values on the right.

mod sections;

pub use sections::phase;

use crate::text;
use anstyle::Style;
use std::fmt::Write;

/// The width of the labels, in characters.
const LABEL_WIDTH: usize = 12;

/// A page under construction.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Adds a label with a text, which may have several lines.
    pub fn line(&mut self, label: &str, text: &str) {
        for (at, line) in text::sanitized_lines(text.trim_end()).lines().enumerate() {
            let label = if at == 0 { label } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "{}", format!("{label:LABEL_WIDTH$}{line}").trim_end());
        }
    }

    /// Returns the text of the page.
    pub fn text(self) -> String {
        self.0
    }
}

/// Highlights the labels of a page. `anstream` removes the colours if the output is not a terminal.
pub fn coloured(page: &str) -> String {
    let bold = Style::new().bold();
    let highlight = |line: &str| match line.split_at_checked(LABEL_WIDTH) {
        Some((label, text)) if !label.starts_with(' ') => format!("{bold}{label}{bold:#}{text}\n"),
        _ => format!("{line}\n"),
    };
    page.lines().map(highlight).collect()
}
