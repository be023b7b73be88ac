//! How findings are shown.

use anstyle::{AnsiColor, Style};
use bloomery_crds::dialect::{Finding, Severity};
use serde::Serialize;
use std::io::{self, Write};

/// A finding and the file that it was found in.
#[derive(Debug, Serialize)]
pub struct Located {
    /// The file, as the command line names it.
    pub file: String,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// How many findings of each severity there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

impl Tally {
    /// Counts findings.
    pub fn of(findings: &[Located]) -> Self {
        let count = |severity| findings.iter().filter(|located| located.finding.severity == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning) }
    }

    /// `2 errors, 1 warning`.
    pub fn words(self) -> String {
        let some = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            many => Some(format!("{many} {what}s")),
        };
        let parts: Vec<String> =
            [some(self.errors, "error"), some(self.warnings, "warning")].into_iter().flatten().collect();
        if parts.is_empty() { "nothing is wrong".to_owned() } else { parts.join(", ") }
    }
}

/// What a document says must not speak to the terminal, or begin a line.
fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// One line a finding, and one more where there is something to do about it.
pub fn text(out: &mut impl Write, findings: &[Located]) -> io::Result<()> {
    let bold = Style::new().bold();
    let help = AnsiColor::Cyan.on_default();
    for Located { file, finding } in findings {
        let colour = match finding.severity {
            Severity::Error => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        };
        let Finding { line, column, severity, path, message, hint } = finding;
        let path = if path.is_empty() { String::new() } else { format!("{}: ", plain(path)) };
        let (file, message) = (plain(file), plain(message));
        writeln!(out, "{bold}{file}:{line}:{column}:{bold:#} {colour}{severity}:{colour:#} {path}{message}")?;
        if let Some(hint) = hint {
            writeln!(out, "    {help}help:{help:#} {}", plain(hint))?;
        }
    }
    Ok(())
}

/// All findings as one JSON array.
pub fn json(out: &mut impl Write, findings: &[Located]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, findings)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::{Located, Tally, text};
    use bloomery_crds::dialect::Finding;

    #[test]
    fn a_message_stays_on_its_line_and_colours_nothing() {
        let finding = Finding::of_file("odd \u{1b}[31m and\nlong");
        let mut out = Vec::new();
        text(&mut out, &[Located { file: "a.yaml".to_owned(), finding }]).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert!(plain.ends_with("error: odd \\u{1b}[31m and\\nlong\n"), "{plain:?}");
    }

    #[test]
    fn the_tally_in_words() {
        assert_eq!(Tally::default().words(), "nothing is wrong");
        assert_eq!(Tally { errors: 2, warnings: 1 }.words(), "2 errors, 1 warning");
    }
}
