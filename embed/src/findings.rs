//! Findings about files.

use bloomery_skills::{Finding, FindingKind, Severity};
use serde::Serialize;

/// The maximum number of findings that are shown for one file. Later findings are often consequences of earlier ones.
const MAX_SHOWN: usize = 100;

/// A finding and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    /// The file, as its user names it.
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
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::{MAX_SHOWN, Tally, in_file};
    use bloomery_skills::Finding;

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
