use super::*;
use proptest::prelude::*;
use rstest::rstest;

/// Applies hunks to a file with this content. Returns the new content.
fn apply_hunks(content: &str, hunks: &str) -> Result<String, Error> {
    let fixture = Fixture::with_files(&[("a", content)]);
    fixture.call(Tool::Patch, json!({"patch": format!("--- a/a\n+++ b/a\n{hunks}")}))?;
    assert!(is_tidy(&fixture));
    Ok(fixture.get("a"))
}

#[rstest]
#[case::a_line("1\n2\n3\n", "@@ -2 +2 @@\n-2\n+two\n", "1\ntwo\n3\n")]
#[case::with_context("1\n2\n3\n", "@@ -1,3 +1,4 @@ fn main\n 1\n-2\n+two\n+and\n 3\n", "1\ntwo\nand\n3\n")]
#[case::two_hunks("1\n2\n3\n4\n5\n", "@@ -1 +1,2 @@\n 1\n+1.5\n@@ -5 +6 @@\n-5\n+five\n", "1\n1.5\n2\n3\n4\nfive\n")]
#[case::added_at_the_start("1\n", "@@ -0,0 +1 @@\n+0\n", "0\n1\n")]
#[case::added_after_a_line("1\n2\n", "@@ -1,0 +2 @@\n+1.5\n", "1\n1.5\n2\n")]
#[case::only_match_at_another_line("0\n0\n1\n2\n3\n", "@@ -1,2 +1,2 @@\n 2\n-3\n+three\n", "0\n0\n1\n2\nthree\n")]
#[case::empty_context_lines_without_their_space("1\n\n2\n", "@@ -1,3 +1,3 @@\n 1\n\n-2\n+two\n", "1\n\ntwo\n")]
#[case::a_line_that_looks_like_a_heading("1\n-- x\n", "@@ -2 +2 @@\n--- x\n+++ y\n", "1\n++ y\n")]
#[case::line_endings_of_the_file("1\r\n2\r\n", "@@ -1,2 +1,3 @@\n 1\n+1.5\n-2\n+two\n", "1\r\n1.5\r\ntwo\r\n")]
#[case::line_endings_in_the_patch("1\r\n2\r\n", "@@ -2 +2 @@\r\n-2\r\n+two\r\n", "1\r\ntwo\r\n")]
#[case::a_missing_last_newline_stays_missing("1\n2", "@@ -2 +2 @@\n-2\n+two\n", "1\ntwo")]
#[case::a_missing_last_newline_that_the_patch_states(
    "1\n2",
    "@@ -2 +2 @@\n-2\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n",
    "1\ntwo"
)]
#[case::a_last_newline_is_added("1\n2", "@@ -2 +2 @@\n-2\n\\ No newline at end of file\n+2\n", "1\n2\n")]
#[case::a_last_newline_is_removed("1\n2\n", "@@ -2 +2 @@\n-2\n+2\n\\ No newline at end of file\n", "1\n2")]
#[case::added_after_a_line_without_newline("1\r\n2", "@@ -2 +2,2 @@\n 2\n+3\n", "1\r\n2\r\n3")]
#[case::all_removed("1\n2\n", "@@ -1,2 +0,0 @@\n-1\n-2\n", "")]
fn a_patch_is_applied(#[case] content: &str, #[case] hunks: &str, #[case] expected: &str) {
    assert_eq!(apply_hunks(content, hunks).unwrap(), expected);
}

#[rstest]
#[case::context_differs(
    "1\n2\n3\n",
    "@@ -1,2 +1,2 @@\n 1\n-two\n+2\n",
    "hunk 1 (line 1) expects `two` in line 2, but found `2`"
)]
#[case::whitespace_differs("  1\n", "@@ -1 +1 @@\n-1\n+2\n", "expects `1` in line 1, but found `  1`")]
#[case::beyond_the_end("1\n", "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n", "but found the end of the file")]
#[case::several_matches(
    "x\n1\nx\n2\nx\n",
    "@@ -2 +2 @@\n-x\n+y\n",
    "matches at the lines 1 and 3. Add more context lines"
)]
#[case::hunks_out_of_order("1\n2\n", "@@ -2 +2 @@\n-2\n+b\n@@ -1 +1 @@\n-1\n+a\n", "hunk 2")]
#[case::no_mark_before_a_character_of_two_bytes("\n", "@@ -1 +1,2 @@\nä\n+b\n", "announces 1 old and 2 new lines")]
#[case::too_few_lines("1\n2\n", "@@ -1,2 +1,2 @@\n-1\n+a\n", "announces 2 old and 2 new lines")]
#[case::too_many_lines("1\n2\n", "@@ -1 +1 @@\n-1\n-2\n+a\n", "announces 1 old and 1 new lines")]
#[case::no_heading("1\n", "@@ nowhere @@\n-1\n+2\n", "is not of the form")]
#[case::no_hunk("1\n", "", "`a` has no hunk")]
#[case::added_beyond_the_end("1\n", "@@ -9,0 +10 @@\n+x\n", "adds lines after line 9, but the file has 1 lines")]
fn a_patch_that_does_not_apply_is_refused(#[case] content: &str, #[case] hunks: &str, #[case] why: &str) {
    let error = apply_hunks(content, hunks).unwrap_err().to_string();
    assert!(error.contains(why) && error.contains("Nothing was changed."), "{error}");
}

#[test]
fn one_patch_creates_changes_and_removes_files() {
    let fixture = Fixture::with_files(&[("src/old.rs", "1\n"), ("keep.rs", "a\n")]);
    let patch = "diff --git a/src/old.rs b/src/old.rs\ndeleted file mode 100644\nindex e69de29..0000000\n\
                 --- a/src/old.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                 diff --git a/src/new/n.rs b/src/new/n.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/new/n.rs\t2026-01-01\n\
                 @@ -0,0 +1,2 @@\n+1\n+2\n\
                 --- keep.rs\n+++ keep.rs\n@@ -1 +1 @@\n-a\n+b\n";
    let answer = fixture.expect_answer(Tool::Patch, json!({"patch": patch}));
    assert_eq!(answer, "Applied: removed `src/old.rs`, changed `keep.rs` (+1 -1), created `src/new/n.rs` (+2 -0).");
    assert!(!fixture.at("src/old.rs").exists());
    assert_eq!((fixture.get("src/new/n.rs").as_str(), fixture.get("keep.rs").as_str()), ("1\n2\n", "b\n"));
    assert!(is_tidy(&fixture));
}

#[rstest]
#[case::a_hunk_does_not_apply("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-9\n+8\n", "does not apply to `b`")]
#[case::the_created_file_exists(
    "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n",
    "The patch creates `b`, but the file exists"
)]
#[case::the_changed_file_is_missing("--- a/c\n+++ b/c\n@@ -1 +1 @@\n-1\n+2\n", "`c` does not exist")]
#[case::the_removed_file_has_more_lines("--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", "not all of its lines")]
#[case::the_same_file_twice("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3\n", "are the same file")]
#[case::renamed("diff --git a/b b/c\nrename from b\nrename to c\n", "cannot be renamed or copied")]
#[case::renamed_by_its_heading(
    "--- a/b\n+++ b/c\n@@ -1 +1 @@\n-1\n+3\n",
    "`b` becomes `c`, but files cannot be renamed"
)]
#[case::made_executable(
    "old mode 100644\nnew mode 100755\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+3\n",
    "the mode of a file"
)]
#[case::binary("GIT binary patch\nliteral 0\n", "binary files cannot be patched")]
#[case::dev_null_twice("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", "/dev/null in both")]
#[case::a_hunk_after_a_new_file_does_not_apply(
    "--- /dev/null\n+++ b/new/n\n@@ -0,0 +1 @@\n+x\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-9\n+8\n",
    "does not apply to `b`"
)]
#[case::out_of_the_resource("--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", "contains `..`")]
fn a_patch_is_applied_completely_or_not_at_all(#[case] second: &str, #[case] why: &str) {
    let fixture = Fixture::with_files(&[("a", "1\n"), ("b", "1\n2\n")]);
    let patch = format!("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n{second}");
    let error = fixture.expect_refusal(Tool::Patch, json!({"patch": patch}));
    assert!(error.contains(why), "{error}");
    assert!(is_tidy(&fixture));
}

#[rstest]
#[case::prose("Please change line 3.", "it contains no file")]
#[case::a_hunk_without_a_file("@@ -1 +1 @@\n-1\n+2\n", "has no --- and +++ lines before it")]
#[case::half_a_heading("--- a/a\n@@ -1 +1 @@\n-1\n+2\n", "no +++ line follows")]
fn a_text_that_is_no_patch_is_refused(#[case] patch: &str, #[case] why: &str) {
    let fixture = Fixture::with_files(&[("a", "1\n")]);
    let error = fixture.expect_refusal(Tool::Patch, json!({"patch": patch}));
    assert!(error.starts_with("The patch is invalid") && error.contains(why), "{error}");
}

#[test]
fn a_patch_that_changes_nothing_says_so() {
    let fixture = Fixture::with_files(&[("a", "1\n")]);
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+1\n";
    assert_eq!(
        fixture.expect_answer(Tool::Patch, json!({"patch": patch})),
        "The patch changes nothing: the files already have this content."
    );
}

/// The second file cannot be written after the first one was.
#[test]
fn a_patch_that_stops_midway_names_the_changed_files() {
    let fixture = Fixture::with_files(&[("a", "1\n"), ("b", "1\n")]);
    let root = Root::open(&Binding { name: "code".into(), path: fixture.root(), read_only: false }, None).unwrap();
    let mut prepared = Vec::new();
    for path in ["a", "b"] {
        let target = replace::Target::find(&root, &root.resource_path(Some(path)).unwrap(), false).unwrap();
        let (label, identity, summary) = (path.to_owned(), target.identity(), format!("changed `{path}`"));
        prepared.push(patch::PreparedFile { label, identity, summary, staged: Some(target.stage(b"2\n").unwrap()) });
    }
    fixture.put("b", "changed by another\n");
    let error = patch::commit(prepared).unwrap_err().to_string();
    assert!(error.contains("`b` cannot be written: another process has changed it"), "{error}");
    assert!(error.starts_with("The patch was applied in part: changed `a`. Then the patch stopped"), "{error}");
    assert_eq!((fixture.get("a").as_str(), fixture.get("b").as_str()), ("2\n", "changed by another\n"));
    assert!(is_tidy(&fixture));
}

/// The empty lines of the file match most of the hunk at each position, so an unlimited search would compare lines for minutes.
#[test]
fn the_search_for_a_hunk_is_limited() {
    let content = "\n".repeat(1_000_000);
    let old = "-\n".repeat(20_000);
    let error = apply_hunks(&content, &format!("@@ -1,20001 +0,0 @@\n{old}-x\n")).unwrap_err().to_string();
    assert!(error.contains("does not apply to `a`"), "{error}");
}

/// Returns a unified diff of two texts, with one hunk that contains all lines.
fn diff(old: &[String], new: &[String]) -> String {
    let range = |lines: &[String]| format!("{},{}", usize::from(!lines.is_empty()), lines.len());
    let removed = old.iter().map(|line| format!("-{line}\n")).collect::<Vec<_>>().concat();
    let added = new.iter().map(|line| format!("+{line}\n")).collect::<Vec<_>>().concat();
    format!("@@ -{} +{} @@\n{removed}{added}", range(old), range(new))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_diff_of_two_texts_turns_one_into_the_other(
        old in prop::collection::vec("[a-c+@ -]{0,3}", 1..8),
        new in prop::collection::vec("[a-c+@ -]{0,3}", 1..8),
    ) {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        prop_assert_eq!(apply_hunks(&text(&old), &diff(&old, &new)).unwrap(), text(&new));
    }

    #[test]
    fn no_patch_panics(patch in "(--- a\n|\\+\\+\\+ a\n|@@ -[0-9]{1,3},?[0-9]? \\+1 @@\n|[ +-][a-c]?\n|\\\\\n|\n|é){0,12}", content in "([a-c]\r?\n|[a-c]){0,6}") {
        let fixture = Fixture::with_files(&[("a", &content)]);
        let _ = fixture.call(Tool::Patch, json!({"patch": patch}));
        prop_assert!(is_tidy(&fixture));
    }
}
