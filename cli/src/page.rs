//! A page for people: names on the left, what belongs to them on the right.

mod sections;

pub use sections::phase;

use crate::text;
use anstyle::Style;
use std::fmt::Write;

/// How wide the names on the left are.
const NAMES: usize = 12;

/// What is written so far.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// A name, and a text that may have several lines.
    pub fn line(&mut self, name: &str, text: &str) {
        for (at, line) in text::sanitized_lines(text.trim_end()).lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            // Nothing fails that writes to a string.
            let _ = writeln!(self.0, "{}", format!("{name:NAMES$}{line}").trim_end());
        }
    }

    /// The page.
    pub fn text(self) -> String {
        self.0
    }
}

/// A page whose names stand out. Whoever prints it takes the colours out where nobody would see them (`anstream`).
pub fn coloured(page: &str) -> String {
    let bold = Style::new().bold();
    let line = |line: &str| match line.split_at_checked(NAMES) {
        Some((name, text)) if !name.starts_with(' ') => format!("{bold}{name}{bold:#}{text}\n"),
        _ => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}
