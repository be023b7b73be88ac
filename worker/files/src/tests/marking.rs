//! A mark is never written in place of its secret.

use super::*;
use rstest::rstest;

const MARK: &str = "[redacted: default]";
const ENV: &str = "NAME=shop\nKEY=sk-1234567890\nDEBUG=no\n";
const REFUSAL: &str = "contains `[redacted: default]`, which replaces a secret that you cannot see";

// The arguments are passed as `json!` returns them.
#[allow(clippy::needless_pass_by_value)]
fn call(fixture: &Fixture, tool: Tool, arguments: Value) -> Result<String, Error> {
    let marks = Marks::new(vec!["[redacted: other]".into(), MARK.into()]);
    fixture.workspace().with_secrets(marks).call(tool, &arguments.to_string())
}

#[rstest]
#[case::whole(Tool::Write, json!({"path": ".env", "content": format!("NAME=shop\nKEY={MARK}\nDEBUG=yes\n")}))]
#[case::new_file(Tool::Write, json!({"path": "new", "content": format!("KEY={MARK}\n")}))]
#[case::edited(Tool::Edit, json!({"path": ".env", "oldText": "DEBUG=no", "newText": format!("DEBUG={MARK}")}))]
#[case::patched(Tool::Patch, json!({"patch": format!("--- a/.env\n+++ b/.env\n@@ -3 +3 @@\n-DEBUG=no\n+DEBUG={MARK}\n")}))]
#[case::created_by_a_patch(Tool::Patch, json!({"patch": format!("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+{MARK}\n")}))]
fn a_mark_does_not_overwrite_a_secret(#[case] tool: Tool, #[case] arguments: Value) {
    let fixture = Fixture::with_files(&[(".env", ENV)]);
    let before = super::tree(fixture.dir.path());
    let error = call(&fixture, tool, arguments).unwrap_err().to_string();
    assert!(error.contains(REFUSAL) && error.contains("Nothing was changed."), "{error}");
    assert_eq!(super::tree(fixture.dir.path()), before);
}

#[rstest]
#[case::edited(Tool::Edit, json!({"path": ".env", "oldText": format!("KEY={MARK}\nDEBUG=no"), "newText": "DEBUG=yes"}))]
#[case::patched(Tool::Patch, json!({"patch": format!("--- a/.env\n+++ b/.env\n@@ -2,2 +2,2 @@\n KEY={MARK}\n-DEBUG=no\n+DEBUG=yes\n")}))]
fn an_error_explains_a_mark_in_the_text_that_was_not_found(#[case] tool: Tool, #[case] arguments: Value) {
    let fixture = Fixture::with_files(&[(".env", ENV)]);
    let error = call(&fixture, tool, arguments).unwrap_err().to_string();
    assert!(error.contains("`[redacted: default]` replaces a secret that you cannot see"), "{error}");
    assert_eq!(fixture.get(".env"), ENV);
}

#[test]
fn other_parts_of_a_file_with_a_secret_can_be_changed() {
    let fixture = Fixture::with_files(&[(".env", ENV)]);
    call(&fixture, Tool::Edit, json!({"path": ".env", "oldText": "DEBUG=no", "newText": "DEBUG=yes"})).unwrap();
    assert_eq!(fixture.get(".env"), ENV.replace("no", "yes"));
    // A mark that does not belong to this Job's secrets is plain text.
    call(&fixture, Tool::Write, json!({"path": "a", "content": "[redacted: third]"})).unwrap();
}

/// Only a mark that the call adds is refused, so a text about marks can be changed.
#[test]
fn a_text_that_contains_a_mark_can_be_edited() {
    let about = format!("What was {MARK} is gone.\n");
    let fixture = Fixture::with_files(&[("about", &about), ("both", &format!("{about}{ENV}"))]);
    call(&fixture, Tool::Write, json!({"path": "about", "content": format!("{about}More.\n")})).unwrap();
    call(&fixture, Tool::Edit, json!({"path": "about", "oldText": MARK, "newText": format!("<{MARK}>")})).unwrap();
    assert_eq!(fixture.get("about"), format!("What was <{MARK}> is gone.\nMore.\n"));
    let content = format!("{about}{}", ENV.replace("sk-1234567890", MARK));
    let error = call(&fixture, Tool::Write, json!({"path": "both", "content": content})).unwrap_err().to_string();
    assert!(error.contains(REFUSAL), "{error}");
}
