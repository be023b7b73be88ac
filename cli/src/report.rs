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
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        writeln!(out, "{bold}{file}:{line}:{column}:{bold:#} {colour}{severity}:{colour:#} {path}{message}")?;
        if let Some(hint) = hint {
            writeln!(out, "    {help}help:{help:#} {hint}")?;
        }
    }
    Ok(())
}

/// All findings as one JSON array.
pub fn json(out: &mut impl Write, findings: &[Located]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, findings)?;
    writeln!(out)
}
