//! The names of segments, and the lines in one.

use super::Error;
use bloomery_engine::line::{Chain, Entry};
use std::path::Path;

const SUFFIX: &str = ".jsonl";
const TEMPORARY_PREFIX: &str = ".tmp-";
/// The number of digits in the name of a segment.
const DIGITS: usize = 20;

/// Returns the name of the segment whose first line is `seq`. Names sort in the order of `seq`.
pub fn name(seq: u64) -> String {
    format!("{seq:0DIGITS$}{SUFFIX}")
}

/// Returns the first `seq` of a segment by its name; `None` for other files.
pub fn seq_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let all_digits = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}

/// Returns the name of the temporary file that a segment is written to before it is linked.
pub fn temporary_name(writer: &str, seq: u64) -> String {
    format!("{TEMPORARY_PREFIX}{writer}-{seq}")
}

/// Returns the writer of a temporary file, and the first `seq` of its segment; `None` for other files.
pub fn parse_temporary_name(name: &str) -> Option<(&str, u64)> {
    let (writer, digits) = name.strip_prefix(TEMPORARY_PREFIX)?.rsplit_once('-')?;
    let seq: u64 = digits.parse().ok()?;
    (seq.to_string() == digits).then_some((writer, seq))
}

/// Reads the lines of a segment into the chain, which checks the position of each line.
pub fn read(file: &Path, content: &[u8], chain: &mut Chain, mut each: impl FnMut(&str, &Entry)) -> Result<(), Error> {
    let broken = |line: usize, reason: String| Error::Broken {
        file: file.to_owned(),
        line: u64::try_from(line).unwrap_or(u64::MAX),
        reason,
    };
    let text = std::str::from_utf8(content).map_err(|error| broken(1, format!("it is not UTF-8 text: {error}")))?;
    let Some(text) = text.strip_suffix('\n') else {
        let reason = if content.is_empty() { "the file is empty" } else { "the file is cut off" };
        return Err(broken(text.lines().count().max(1), reason.to_owned()));
    };
    for (at, line) in text.split('\n').enumerate() {
        let entry = chain.read(line).map_err(|error| broken(at + 1, error.to_string()))?;
        each(line, &entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_contains_its_seq_and_other_names_are_no_segments() {
        assert_eq!(name(1), "00000000000000000001.jsonl");
        assert_eq!(seq_of(&name(u64::MAX)), Some(u64::MAX));
        for other in ["1.jsonl", "0000000000000000000a.jsonl", ".tmp-uid-1", "99999999999999999999.jsonl", ""] {
            assert_eq!(seq_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_temporary_name_contains_its_writer_and_seq_and_other_names_are_none() {
        for (writer, seq) in [("uid-1", 1), ("a", u64::MAX), ("local-7-00ff", 40)] {
            assert_eq!(parse_temporary_name(&temporary_name(writer, seq)), Some((writer, seq)));
        }
        for other in
            [&*name(1), ".probe-uid-1", ".tmp-uid", ".tmp-uid-run.json", ".tmp-uid-01", ".tmp-uid-+1", "tmp-uid-1", ""]
        {
            assert_eq!(parse_temporary_name(other), None, "{other}");
        }
    }
}
