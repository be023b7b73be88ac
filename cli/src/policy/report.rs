//! The report of `bloomery policy test`.

use super::replay::CallRuling;
use crate::args::DataOutput;
use crate::error::Error;
use crate::summary::counted;
use crate::text::sanitized_line;
use crate::{output, table};

/// Formats the rulings as a table, or for programs.
///
/// # Errors
/// If the format cannot represent them.
pub fn format(rulings: &[CallRuling], format: Option<DataOutput>) -> Result<String, Error> {
    match format {
        Some(DataOutput::Json) => output::json(&rulings),
        Some(DataOutput::Yaml) => output::yaml(&rulings),
        None => Ok(table::render(&["CASE", "CALL", "VERDICT", "EXPECTED", "TEST", "REASON"], rulings.iter().map(row))),
    }
}

fn row(ruling: &CallRuling) -> [String; 6] {
    let CallRuling { case, call, tool, verdict, expected, reasons, passed } = ruling;
    let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        sanitized_line(case),
        format!("{call} {}", sanitized_line(tool)),
        shown(verdict.map(|verdict| verdict.to_string())),
        shown(expected.map(|expected| expected.to_string())),
        if *passed { "ok" } else { "FAILED" }.to_owned(),
        sanitized_line(&reasons.join("; ")),
    ]
}

/// Returns the counts, such as `5 calls in 2 cases: 1 is not as expected`.
pub fn summary(calls: usize, cases: usize, differing: usize) -> String {
    let result = match differing {
        0 => "all as expected".to_owned(),
        1 => "1 is not as expected".to_owned(),
        many => format!("{many} are not as expected"),
    };
    format!("{} in {}: {result}", counted(calls as u64, "call"), counted(cases as u64, "case"))
}
