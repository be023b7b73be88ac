//! No answer contains a part of a secret, wherever the answer is cut.

use super::*;
use memchr::memmem;
use proptest::prelude::*;
use rstest::rstest;

/// A secret in which all characters differ.
const SECRET: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A secret with several lines.
const KEY: &str = "----BEGIN\nabcdefghijklm\nopqrstuvw\nxyz\n----END";

const MARK: &str = "[redacted: it]";

/// Finds the two secrets in plain text.
#[derive(Debug)]
struct PlainFinder;

impl SecretFinder for PlainFinder {
    fn find(&self, text: &[u8]) -> Vec<SecretMatch> {
        let matches_of = |value: &'static str| {
            let to_match = |at: usize| SecretMatch { range: at..at + value.len(), mark: MARK.into() };
            memmem::find_iter(text, value).map(to_match).collect::<Vec<_>>()
        };
        let mut found = [matches_of(SECRET), matches_of(KEY)].concat();
        found.sort_by_key(|found| found.range.start);
        found
    }

    fn max_secret_length(&self) -> usize {
        KEY.len()
    }
}

fn secrets() -> Secrets {
    Secrets::new(Marks::new(vec![MARK.into()]), Arc::new(PlainFinder))
}

// The arguments are passed as `json!` returns them.
#[allow(clippy::needless_pass_by_value)]
fn call(fixture: &Fixture, tool: Tool, arguments: Value) -> Result<String, Error> {
    fixture.workspace().with_secrets(secrets()).call(tool, &arguments.to_string())
}

/// Returns whether a text contains four consecutive bytes of a secret.
fn shows_secret(text: &str) -> bool {
    let key = KEY.replace('\n', "");
    [SECRET, &key]
        .iter()
        .any(|value| value.as_bytes().windows(4).any(|part| text.contains(std::str::from_utf8(part).unwrap())))
}

#[rstest]
#[case::the_line_of_one(json!({"line": 2, "lines": 1}), "is [redacted: it].\n[lines 2 to 2, bytes 6 to 47 of 107; continue with line 3]")]
#[case::the_first_line_of_a_key(json!({"line": 3, "lines": 1}), "[redacted: it]\n[lines 3 to 7, bytes 47 to 93 of 107; continue with line 8]")]
#[case::a_line_of_a_key(json!({"line": 4, "lines": 1}), "[redacted: it]\n[lines 4 to 7, bytes 57 to 93 of 107; continue with line 8]")]
#[case::the_last_line_of_a_key(json!({"line": 7}), "[redacted: it]\nThat is all.\n\n[lines 7 to 9, bytes 85 to 107 of 107; end of file]")]
#[case::an_offset_within(json!({"offset": 20, "lines": 1}), "[redacted: it].\n[bytes 20 to 47 of 107; continue with offset 47]")]
fn a_part_of_a_file_has_no_part_of_a_secret(#[case] mut arguments: Value, #[case] expected: &str) {
    let fixture = Fixture::with_files(&[("a", &format!("Here:\nis {SECRET}.\n{KEY}\nThat is all.\n\n"))]);
    arguments["path"] = json!("a");
    assert_eq!(call(&fixture, Tool::Read, arguments).unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The joined answers are the redacted file, wherever the file is cut.
    #[test]
    fn a_file_that_is_read_in_parts_shows_each_secret_as_one_mark(before in 0_usize..80, lines in 0_usize..3, key in any::<bool>()) {
        let value = if key { KEY } else { SECRET };
        let long = crate::read::MAX_BYTES - 70 + before;
        let text = format!("{}{}{value}, {}\n{value}", "#\n".repeat(lines), "#".repeat(long), "#".repeat(long));
        let fixture = Fixture::with_files(&[("a", &text)]);
        let (mut read, mut from) = (String::new(), json!({"path": "a"}));
        loop {
            let answer = call(&fixture, Tool::Read, from).unwrap();
            let (part, note) = answer.rsplit_once('[').unwrap();
            read.push_str(part);
            let Some((_, next)) = note.rsplit_once("continue with ") else { break };
            let (argument, at) = next.trim_end_matches(']').split_once(' ').unwrap();
            from = json!({"path": "a", argument: at.parse::<u64>().unwrap()});
        }
        prop_assert!(!shows_secret(&read), "{read}");
        prop_assert_eq!(read.replace('\n', ""), text.replace(value, MARK).replace('\n', ""));
    }

    #[test]
    fn no_offset_shows_a_part_of_a_secret(offset in 0_u64..90, lines in 1_u64..4) {
        let fixture = Fixture::with_files(&[("a", &format!("#{SECRET}#\n{KEY}#\n"))]);
        if let Ok(read) = call(&fixture, Tool::Read, json!({"path": "a", "offset": offset, "lines": lines})) {
            prop_assert!(!shows_secret(&read), "{read}");
        }
    }

    #[test]
    fn a_matching_line_shows_no_part_of_a_secret(before in 0_usize..400, between in 0_usize..400, context in 0_usize..2) {
        let line = format!("{}{SECRET}{}here{}{SECRET}", "#".repeat(before), "#".repeat(between), "#".repeat(300 - between.min(300)));
        let fixture = Fixture::with_files(&[("a", &format!("{line}\n{KEY} here\n"))]);
        let found = call(&fixture, Tool::Search, json!({"pattern": "here", "context": context})).unwrap();
        prop_assert!(!shows_secret(&found) && found.contains("2 matches"), "{found}");
    }
}

/// If patterns matched secrets, a model could guess a secret character by character.
#[test]
fn a_pattern_does_not_match_a_secret() {
    let fixture = Fixture::with_files(&[("a", &format!("key {SECRET}\n{KEY}\n"))]);
    for pattern in ["0123", "[0-9]A", "qrst", "^xyz$", "redacted"] {
        let found = call(&fixture, Tool::Search, json!({"pattern": pattern})).unwrap();
        assert!(found.starts_with("[0 matches"), "{found}");
    }
    let found = call(&fixture, Tool::Search, json!({"pattern": "^key"})).unwrap();
    assert!(found.starts_with(&format!("a\n  1: key {MARK}\n")), "{found}");
}

#[test]
fn the_error_of_a_patch_contains_no_part_of_a_secret() {
    for before in 200..260 {
        let fixture = Fixture::with_files(&[("a", &format!("{}{SECRET}\n", "#".repeat(before)))]);
        let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
        let error = call(&fixture, Tool::Patch, json!({"patch": patch})).unwrap_err().to_string();
        assert!(!shows_secret(&error) && error.contains("but found"), "{error}");
    }
    let fixture = Fixture::with_files(&[("a", &format!("{KEY}\n"))]);
    let error = call(&fixture, Tool::Patch, json!({"patch": "--- a/a\n+++ b/a\n@@ -2 +2 @@\n-x\n+y\n"}))
        .unwrap_err()
        .to_string();
    assert!(!shows_secret(&error) && error.contains(MARK), "{error}");
}

#[test]
fn git_operations_are_listed_without_a_part_of_a_secret() {
    for before in [60, 85, 90, 100, 115, 8 * 1024 - 20] {
        let metadata = "0 1 Jane <j@example.com> 1767225600 +0100";
        let log = format!("{metadata}\tcommit: {}{SECRET}\n", "#".repeat(before));
        let fixture = Fixture::with_files(&[
            (".git/HEAD", &format!("ref: refs/heads/{}{SECRET}\n", "#".repeat(before))),
            (".git/logs/HEAD", &log),
        ]);
        let wanted = OverviewSelection { structure: false, changes: true };
        let overviews = fixture.workspace().with_secrets(secrets()).overviews(wanted);
        let text = overviews[0].text.as_ref().unwrap();
        assert!(!shows_secret(text) && text.contains("git, on"), "{text}");
    }
}

#[test]
fn a_core_note_that_is_cut_shows_no_part_of_a_secret() {
    for before in [9 * 1024 - 30, 9 * 1024 - 5, 9 * 1024] {
        let memory = tempfile::tempdir().unwrap();
        let dir = memory.path().join(bank::DIR);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("progress.md"), format!("{}{SECRET}{}", "#".repeat(before), "#".repeat(99))).unwrap();
        let notes = bank::Bank::new(memory.path(), "uid-1").with_secrets(secrets()).consult();
        let text = notes[0].text.as_ref().unwrap();
        assert!(!shows_secret(text) && text.contains("[cut: "), "{text}");
    }
}

#[test]
fn no_part_of_a_secret_can_be_guessed_by_editing_it() {
    let content = format!("key {SECRET}\n{KEY}\n");
    let fixture = Fixture::with_files(&[("a", &content)]);
    for old in ["0123", "key 01", "MNOP", "XYZ\n", "xyz", "klm\nopq"] {
        let error =
            call(&fixture, Tool::Edit, json!({"path": "a", "oldText": old, "newText": old})).unwrap_err().to_string();
        assert_eq!(error, "oldText does not occur in `a`. Nothing was changed.");
    }
    call(&fixture, Tool::Edit, json!({"path": "a", "oldText": "key ", "newText": "a key "})).unwrap();
    assert_eq!(fixture.get("a"), format!("a {content}"));
}
