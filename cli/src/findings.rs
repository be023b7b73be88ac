//! Prints the findings of files.

use crate::text::escaped;
use anstyle::{AnsiColor, Style};
use bloomery_skills::{Finding, FindingKind, Severity};
use serde::Serialize;
use std::io::{self, Write};

/// The maximum number of findings that are shown for one file. Later findings are often consequences of earlier ones.
const MAX_SHOWN: usize = 100;

/// A finding and its file.
#[derive(Debug, Serialize)]
pub struct FileFinding {
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
    pub fn plus(self, other: Self) -> Self {
        Self { errors: self.errors + other.errors, warnings: self.warnings + other.warnings }
    }

    /// Formats the tally, such as `2 errors, 1 warning`.
    pub fn summary(self) -> String {
        let counted = |count: usize, noun: &str| match count {
            0 => None,
            1 => Some(format!("1 {noun}")),
            many => Some(format!("{many} {noun}s")),
        };
        let parts: Vec<String> =
            [counted(self.errors, "error"), counted(self.warnings, "warning")].into_iter().flatten().collect();
        if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") }
    }
}

/// Returns the first [`MAX_SHOWN`] findings of a file, with the name of the file, and a finding that counts the others.
pub fn in_file(file: &str, mut findings: Vec<Finding>) -> Vec<FileFinding> {
    let hidden = findings.split_off(findings.len().min(MAX_SHOWN));
    findings.extend(hidden_summary(&hidden));
    findings.into_iter().map(|finding| FileFinding { file: file.to_owned(), finding }).collect()
}

/// Returns the finding that counts the hidden findings, if there are any.
fn hidden_summary(hidden: &[Finding]) -> Option<Finding> {
    let Finding { line, column, .. } = hidden.first()?;
    let severity = hidden.iter().map(|finding| finding.severity).max()?;
    let message = format!("further findings from this line on are not shown: {}", Tally::count(hidden).summary());
    let hint = Some("fix the findings above, and run the command again".to_owned());
    Some(Finding {
        line: *line,
        column: *column,
        severity,
        object: None,
        path: String::new(),
        message,
        hint,
        kind: FindingKind::Other,
    })
}

/// Prints each finding on a line, with its hint on a second line. A hint that equals the previous one is not repeated.
pub fn print_text(out: &mut impl Write, findings: &[FileFinding]) -> io::Result<()> {
    let bold = Style::new().bold();
    let help = AnsiColor::Cyan.on_default();
    let mut previous_hint: Option<&String> = None;
    for FileFinding { file, finding } in findings {
        let colour = match finding.severity {
            Severity::Error => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        };
        let Finding { line, column, severity, object, path, message, hint, kind: _ } = finding;
        let prefixes = object.iter().chain(Some(path).filter(|path| !path.is_empty()));
        let path: String = prefixes.map(|prefix| format!("{}: ", escaped(prefix))).collect::<Vec<_>>().concat();
        let (file, message) = (escaped(file), escaped(message));
        writeln!(out, "{bold}{file}:{line}:{column}:{bold:#} {colour}{severity}:{colour:#} {path}{message}")?;
        if let Some(hint) = hint.as_ref().filter(|hint| previous_hint != Some(hint)) {
            writeln!(out, "    {help}help:{help:#} {}", escaped(hint))?;
        }
        previous_hint = hint.as_ref();
    }
    Ok(())
}

/// Prints all findings as a JSON array.
pub fn print_json(out: &mut impl Write, findings: &[FileFinding]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, findings)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::{FileFinding, MAX_SHOWN, Tally, in_file, print_text};
    use bloomery_skills::Finding;

    #[test]
    fn control_characters_in_a_message_are_escaped() {
        let finding = Finding::of_file("odd \u{1b}[31m and\nlong");
        let mut out = Vec::new();
        print_text(&mut out, &[FileFinding { file: "a.yaml".to_owned(), finding }]).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert!(plain.ends_with("error: odd \\u{1b}[31m and\\nlong\n"), "{plain:?}");
    }

    #[test]
    fn hidden_findings_are_counted() {
        let findings = |count: usize| vec![Finding::of_file("x"); count];
        assert_eq!(in_file("a.yaml", findings(MAX_SHOWN)).len(), MAX_SHOWN);
        let shown = in_file("a.yaml", findings(MAX_SHOWN + 7));
        assert_eq!(shown.len(), MAX_SHOWN + 1);
        assert!(shown[MAX_SHOWN].finding.message.ends_with("not shown: 7 errors"), "{shown:?}");
    }

    #[test]
    fn a_tally_has_a_summary() {
        assert_eq!(Tally::default().summary(), "no problems");
        assert_eq!(Tally { errors: 2, warnings: 1 }.summary(), "2 errors, 1 warning");
    }
}
