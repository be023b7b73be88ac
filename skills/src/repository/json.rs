//! Reads JSON into a document. Every value has its place.

use crate::document::Document;
use crate::finding::Finding;
use crate::tree::{Path, Place};
use crate::yaml;
use serde::de::IgnoredAny;

/// The mark with which some editors begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads the only value of a file. A fault of its syntax is reported in terms of JSON. Then the file is read as YAML, which contains
/// JSON, because the YAML reader returns places.
///
/// # Errors
/// The faults of the file.
pub(super) fn read(bytes: &[u8]) -> Result<(Document, Vec<Finding>), Vec<Finding>> {
    let json = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.len() <= yaml::MAX_BYTES
        && std::str::from_utf8(json).is_ok()
        && let Err(error) = serde_json::from_slice::<IgnoredAny>(json)
    {
        return Err(vec![syntax_error(&error)]);
    }
    let mut read = yaml::read(bytes);
    match read.documents.pop() {
        Some(document) => Ok((document, read.findings)),
        None if read.findings.is_empty() => Err(vec![Finding::of_file("must be an object, and is null")]),
        None => Err(read.findings),
    }
}

fn syntax_error(error: &serde_json::Error) -> Finding {
    let (line, column) = (error.line().max(1), error.column().max(1));
    let message = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    let place = Place { line, column, path: Path::default() };
    Finding::error(&place, format!("is not valid JSON: {}", message.strip_suffix(&at).unwrap_or(&message)))
}

#[cfg(test)]
mod tests {
    use super::read;
    use rstest::rstest;

    #[rstest]
    #[case::tabs("{\n\t\"goal\": \"x\",\n\t\"features\": [\n\t\t{}\n\t]\n}\n")]
    #[case::escapes(r#"{"goal": "a\/b \ud83d\ude00 \u00e4", "n": [1, -2.5e3, true, null]}"#)]
    #[case::no_blanks(r#"{"a":{"b":[{"c":"d"},[]]},"e":"f"}"#)]
    #[case::byte_order_mark("\u{feff}{\"goal\": \"x\"}")]
    #[case::long_text(&format!("{{\"goal\": \"{}\"}}", "x: ".repeat(1_000)))]
    #[case::words_of_yaml(r#"{"a": "no", "b": "- x # y", "c": "~", "d": "&e *f !g"}"#)]
    fn json_has_the_same_value_as_yaml(#[case] text: &str) {
        let (document, findings) = read(text.as_bytes()).unwrap();
        assert_eq!(findings, []);
        let expected: serde_json::Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
        assert_eq!(document.root.json(), expected);
    }

    #[rstest]
    #[case::a_comma_too_many(b"{\n  \"goal\": \"x\",\n}", "3:1: error: is not valid JSON: ")]
    #[case::no_quotes(b"{\n  goal: x}", "2:3: error: is not valid JSON: ")]
    #[case::nothing(b"", "1:1: error: is not valid JSON: EOF")]
    #[case::two_values(b"{}\n{}", "2:1: error: is not valid JSON: trailing characters")]
    #[case::not_utf8(b"{\n \"goal\": \"\xff\"}", "2:11: error: the byte 0xFF is not UTF-8")]
    #[case::null(b"null", "1:1: error: must be an object, and is null")]
    fn a_broken_file_is_reported_with_its_line(#[case] bytes: &[u8], #[case] expected: &str) {
        let findings: Vec<String> = read(bytes).unwrap_err().iter().map(ToString::to_string).collect();
        assert!(findings.len() == 1 && findings[0].starts_with(expected), "{findings:?}");
    }

    #[test]
    fn a_key_that_is_there_twice_is_reported() {
        let (_, findings) = read(b"{\"goal\": \"x\",\n \"goal\": \"y\"}").unwrap();
        assert!(findings[0].to_string().starts_with("2:2: error: goal: the key is in the map twice"), "{findings:?}");
    }
}
