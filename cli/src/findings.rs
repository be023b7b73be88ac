//! Prints the findings of files.

use crate::text::escaped;
use anstyle::{AnsiColor, Style};
pub use bloomery_embed::findings::{FileFinding, Tally, in_file};
use bloomery_skills::{Finding, Severity};
use std::io::{self, Write};

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
    use super::{FileFinding, print_text};
    use bloomery_skills::Finding;

    #[test]
    fn control_characters_in_a_message_are_escaped() {
        let finding = Finding::of_file("odd \u{1b}[31m and\nlong");
        let mut out = Vec::new();
        print_text(&mut out, &[FileFinding { file: "a.yaml".to_owned(), finding }]).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert!(plain.ends_with("error: odd \\u{1b}[31m and\\nlong\n"), "{plain:?}");
    }
}
