//! Output of findings.

use crate::text::escaped;
use anstyle::{AnsiColor, Style};
use bloomery_skills::{Finding, Severity};
use serde::Serialize;
use std::io::{self, Write};

/// The most findings of a file that are shown. Later ones are often consequences of these.
const MAX_SHOWN: usize = 100;

/// A finding and its file.
#[derive(Debug, Serialize)]
pub struct Located {
    /// The file, as named on the command line.
    pub file: String,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// The number of findings of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

impl Tally {
    /// Counts findings.
    pub fn count(findings: &[Finding]) -> Self {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning) }
    }

    /// Adds two tallies.
    pub fn plus(self, others: Self) -> Self {
        Self { errors: self.errors + others.errors, warnings: self.warnings + others.warnings }
    }

    /// Returns `2 errors, 1 warning`.
    pub fn summary(self) -> String {
        let some = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            many => Some(format!("{many} {what}s")),
        };
        let parts: Vec<String> =
            [some(self.errors, "error"), some(self.warnings, "warning")].into_iter().flatten().collect();
        if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") }
    }
}

/// Returns the findings of a file that are shown: the first ones, and one that counts the others.
pub fn located(file: &str, mut findings: Vec<Finding>) -> Vec<Located> {
    let others = findings.split_off(findings.len().min(MAX_SHOWN));
    findings.extend(more(&others));
    findings.into_iter().map(|finding| Located { file: file.to_owned(), finding }).collect()
}

fn more(others: &[Finding]) -> Option<Finding> {
    let Finding { line, column, .. } = others.first()?;
    let severity = others.iter().map(|finding| finding.severity).max()?;
    let message = format!("more is wrong from here on, and not shown: {}", Tally::count(others).summary());
    let hint = Some("mend what is shown, and look again".to_owned());
    Some(Finding { line: *line, column: *column, severity, path: String::new(), message, hint })
}

/// Prints each finding on a line, followed by its hint unless the previous finding had the same.
pub fn text(out: &mut impl Write, findings: &[Located]) -> io::Result<()> {
    let bold = Style::new().bold();
    let help = AnsiColor::Cyan.on_default();
    let mut said: Option<&String> = None;
    for Located { file, finding } in findings {
        let colour = match finding.severity {
            Severity::Error => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        };
        let Finding { line, column, severity, path, message, hint } = finding;
        let path = if path.is_empty() { String::new() } else { format!("{}: ", escaped(path)) };
        let (file, message) = (escaped(file), escaped(message));
        writeln!(out, "{bold}{file}:{line}:{column}:{bold:#} {colour}{severity}:{colour:#} {path}{message}")?;
        if let Some(hint) = hint.as_ref().filter(|hint| said != Some(hint)) {
            writeln!(out, "    {help}help:{help:#} {}", escaped(hint))?;
        }
        said = hint.as_ref();
    }
    Ok(())
}

/// Prints all findings as a JSON array.
pub fn json(out: &mut impl Write, findings: &[Located]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, findings)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::{Located, MAX_SHOWN, Tally, located, text};
    use bloomery_skills::Finding;

    #[test]
    fn a_message_stays_on_its_line_and_colours_nothing() {
        let finding = Finding::of_file("odd \u{1b}[31m and\nlong");
        let mut out = Vec::new();
        text(&mut out, &[Located { file: "a.yaml".to_owned(), finding }]).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert!(plain.ends_with("error: odd \\u{1b}[31m and\\nlong\n"), "{plain:?}");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let findings = |count: usize| vec![Finding::of_file("x"); count];
        assert_eq!(located("a.yaml", findings(MAX_SHOWN)).len(), MAX_SHOWN);
        let shown = located("a.yaml", findings(MAX_SHOWN + 7));
        assert_eq!(shown.len(), MAX_SHOWN + 1);
        assert!(shown[MAX_SHOWN].finding.message.ends_with("not shown: 7 errors"), "{shown:?}");
    }

    #[test]
    fn the_tally_in_words() {
        assert_eq!(Tally::default().summary(), "no problems");
        assert_eq!(Tally { errors: 2, warnings: 1 }.summary(), "2 errors, 1 warning");
    }
}
