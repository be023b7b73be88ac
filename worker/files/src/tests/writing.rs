use super::*;
use rstest::rstest;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_file_is_written_whole() {
    let fixture = Fixture::with_files(&[("a", "old")]);
    assert_eq!(
        fixture.expect_answer(Tool::Write, json!({"path": "a", "content": "newer"})),
        "Wrote `a`: 5 bytes in place of 3."
    );
    assert_eq!(
        fixture.expect_answer(Tool::Write, json!({"path": "b", "content": ""})),
        "Wrote `b`: a new file of 0 bytes."
    );
    assert_eq!((fixture.get("a").as_str(), fixture.get("b").as_str()), ("newer", ""));
    assert!(is_tidy(&fixture));
}

#[test]
fn a_write_of_the_same_content_is_reported_and_leaves_the_file() {
    let fixture = Fixture::with_files(&[("a", "same")]);
    let before = fixture.at("a").metadata().unwrap().modified().unwrap();
    let answer = fixture.expect_answer(Tool::Write, json!({"path": "a", "content": "same"}));
    assert_eq!(answer, "`a` already has this content. Nothing was changed.");
    assert_eq!(fixture.at("a").metadata().unwrap().modified().unwrap(), before);
}

#[test]
fn missing_directories_are_created_on_request() {
    let fixture = Fixture::new();
    let error = fixture.expect_refusal(Tool::Write, json!({"path": "a/b/c", "content": "x"}));
    assert_eq!(error, "The directory `a/b` does not exist. Nothing was changed. Set createDirectories to create it.");
    fixture.expect_answer(Tool::Write, json!({"path": "a/b/c", "content": "x", "createDirectories": true}));
    assert_eq!(fixture.get("a/b/c"), "x");
}

#[rstest]
#[case::a_script(0o755)]
#[case::private(0o600)]
fn a_file_keeps_its_mode(#[case] mode: u32) {
    let fixture = Fixture::with_files(&[("a", "old")]);
    fs::set_permissions(fixture.at("a"), fs::Permissions::from_mode(mode)).unwrap();
    fixture.expect_answer(Tool::Write, json!({"path": "a", "content": "new"}));
    fixture.expect_answer(Tool::Edit, json!({"path": "a", "oldText": "new", "newText": "newer"}));
    assert_eq!(fixture.at("a").metadata().unwrap().permissions().mode() & 0o7777, mode);
}

#[rstest]
#[case::a_directory("dir", "is a directory")]
#[case::the_resource("", "path is that of the resource itself")]
#[case::below_a_file("file/a", "is not a directory")]
#[case::a_name_that_is_too_long(&"x".repeat(300), "does not allow this name")]
fn an_invalid_path_is_not_written(#[case] path: &str, #[case] why: &str) {
    let fixture = Fixture::with_files(&[("dir/a", "x"), ("file", "x")]);
    let error = fixture.expect_refusal(Tool::Write, json!({"path": path, "content": "y"}));
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_text_that_occurs_once_is_replaced() {
    let fixture = Fixture::with_files(&[("a", "one\ntwo\nthree\n")]);
    let answer = fixture.expect_answer(Tool::Edit, json!({"path": "a", "oldText": "two\nth", "newText": "2\nTh"}));
    assert_eq!(answer, "Edited `a` at line 2.");
    assert_eq!(fixture.get("a"), "one\n2\nThree\n");
    assert!(is_tidy(&fixture));
}

#[rstest]
#[case::not_there("four", "oldText does not occur in `a`. Nothing was changed.")]
#[case::whitespace_differs("two\n  three", "Its first line is at line 2")]
#[case::several("o", "oldText occurs 2 times in `a`, at the lines 1, 2")]
#[case::overlapping("aa", "oldText occurs 2 times in `a`, at the lines 4, 4")]
#[case::many("z", "oldText occurs more than 10 times in `a`")]
#[case::empty("", "oldText is empty")]
fn an_edit_without_exactly_one_match_is_refused(#[case] old: &str, #[case] why: &str) {
    let fixture = Fixture::with_files(&[("a", "one\ntwo\nthree\naaa\nzzzzzzzzzzzz\n")]);
    let error = fixture.expect_refusal(Tool::Edit, json!({"path": "a", "oldText": old, "newText": "x"}));
    assert!(error.contains(why), "{error}");
}

#[test]
fn an_edit_of_a_missing_or_large_file_is_refused() {
    let fixture = Fixture::new();
    let edit = |path: &str| json!({"path": path, "oldText": "x", "newText": "y"});
    assert_eq!(fixture.expect_refusal(Tool::Edit, edit("a")), "`a` does not exist. Nothing was changed.");
    fixture.put("large", "x".repeat(3 * 1024 * 1024));
    let error = fixture.expect_refusal(Tool::Edit, edit("large"));
    assert!(error.contains("3145728 bytes, more than"), "{error}");
}

#[test]
fn an_edit_keeps_line_endings_and_invalid_utf_8() {
    let fixture = Fixture::new();
    fixture.put("crlf", "one\r\ntwo\r\nthree\r\n");
    fixture.expect_answer(Tool::Edit, json!({"path": "crlf", "oldText": "one\ntwo", "newText": "1\n2"}));
    assert_eq!(fixture.get("crlf"), "1\r\n2\r\nthree\r\n");
    fixture.put("latin", b"caf\xe9 x\n");
    fixture.expect_answer(Tool::Edit, json!({"path": "latin", "oldText": " x", "newText": " y"}));
    assert_eq!(fs::read(fixture.at("latin")).unwrap(), b"caf\xe9 y\n");
}

#[test]
fn an_edit_that_changes_nothing_says_so() {
    let fixture = Fixture::with_files(&[("a", "same")]);
    let answer = fixture.expect_answer(Tool::Edit, json!({"path": "a", "oldText": "same", "newText": "same"}));
    assert_eq!(answer, "oldText and newText are equal. `a` was not changed.");
}
