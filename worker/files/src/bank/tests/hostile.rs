//! Files in the bank that no worker has written.

use super::*;
use rstest::rstest;
use std::os::unix::fs as unix;

/// Creates a named pipe.
fn pipe(at: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
}

#[rstest]
#[case::large(|at: &Path| fs::write(at, "x".repeat(10 << 20)).unwrap(), "10485760 bytes")]
#[case::binary(|at: &Path| fs::write(at, "a\0b").unwrap(), "NUL")]
#[case::pipe(pipe, "a named pipe")]
#[case::directory(|at: &Path| fs::create_dir(at).unwrap(), "a directory")]
#[case::link_out(|at: &Path| unix::symlink("../secret", at).unwrap(), "a symbolic link")]
#[case::link_within(|at: &Path| unix::symlink("projectbrief.md", at).unwrap(), "a symbolic link")]
#[case::link_to_nothing(|at: &Path| unix::symlink("nothing", at).unwrap(), "a symbolic link")]
fn a_file_that_is_not_a_note_is_reported_and_stays(#[case] make: impl Fn(&Path), #[case] why: &str) {
    let fixture = Fixture::with_notes(&[("projectbrief.md", "Orders.\n")]);
    fs::write(fixture.dir.path().join("secret"), "outside").unwrap();
    make(&fixture.at("progress.md"));
    for error in [
        fixture.read("progress.md").unwrap_err().to_string(),
        fixture.write("progress.md", "x", NONE).unwrap_err().to_string(),
    ] {
        assert!(error.contains(why) && !error.contains("outside"), "{error}");
    }
    let notes = fixture.bank().consult();
    assert_eq!(notes[0].text.as_deref(), Ok("Orders.\n"));
    assert!(
        notes[1].file == "progress.md" && notes[1].text.as_ref().is_err_and(|error| error.to_string().contains(why))
    );
    // Other notes can be written.
    fixture.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(fs::read_to_string(fixture.dir.path().join("secret")).unwrap(), "outside");
}

#[test]
fn invalid_utf_8_in_a_note_is_replaced_and_noted() {
    let fixture = Fixture::new();
    fixture.put("progress.md", b"caf\xe9\n");
    let read = fixture.read("progress.md").unwrap();
    assert!(read.starts_with("caf\u{fffd}\n") && read.contains("the file is not UTF-8"), "{read}");
    fixture.write("progress.md", "café\n", &hash_in(&read)).unwrap();
}

#[rstest]
#[case::the_bank(DIR)]
#[case::the_details("memory-bank/details")]
#[case::the_ledger("memory-bank/.ledger")]
fn a_link_in_place_of_a_directory_is_not_followed(#[case] place: &str) {
    let fixture = Fixture::new();
    let elsewhere = fixture.dir.path().join("jobs");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("progress.md"), "a log\n").unwrap();
    fs::create_dir_all(fixture.dir.path().join(place).parent().unwrap()).unwrap();
    unix::symlink(&elsewhere, fixture.dir.path().join(place)).unwrap();
    let write = fixture.write("details/a.md", "x", NONE).unwrap_err().to_string();
    let read = fixture.read("details/progress.md").unwrap_err().to_string();
    assert!(write.contains("cannot be opened") && read.contains("cannot be opened"), "{write} {read}");
    assert!(fixture.bank().has_notes());
    assert!(
        fixture.bank().consult()[0].text.as_ref().is_err_and(|error| error.to_string().contains("cannot be opened"))
    );
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 1);
}

#[rstest]
#[case::no_json("00000000000000000001.json", "no json")]
#[case::an_invalid_note_name("00000000000000000001.json", r#"{"file":"../../jobs/x","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","job":"j","runKey":"k","call":"1-0","time":"t","staged":"../../secret"}"#)]
#[case::a_staged_content_outside_of_the_ledger("00000000000000000001.json", r#"{"file":"progress.md","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","job":"j","runKey":"k","call":"1-0","time":"t","staged":"../../secret"}"#)]
#[case::another_name("notes.txt", "x")]
#[case::a_number_above_the_largest("99999999999999999999.json", "{}")]
fn other_files_in_the_ledger_are_ignored(#[case] name: &str, #[case] content: &str) {
    let fixture = Fixture::with_notes(&[("progress.md", "One.\n")]);
    fixture.put(&format!(".ledger/{name}"), content);
    fs::write(fixture.dir.path().join("secret"), "outside").unwrap();
    let hash = hash_in(&fixture.read("progress.md").unwrap());
    fixture.write("progress.md", "Two.\n", &hash).unwrap();
    assert_eq!(fixture.get("progress.md"), "Two.\n");
    assert_eq!(fs::read_to_string(fixture.dir.path().join("secret")).unwrap(), "outside");
}

#[test]
fn a_ledger_without_free_numbers_is_reported() {
    let fixture = Fixture::new();
    fixture.put(&format!(".ledger/{}.json", u64::MAX), "{}");
    let error = fixture.write("progress.md", "x", NONE).unwrap_err().to_string();
    assert!(error.contains("has used all its numbers"), "{error}");
}

#[test]
fn a_file_in_place_of_a_directory_is_reported() {
    let fixture = Fixture::with_notes(&[("progress.md", "One.\n")]);
    fs::write(fixture.at("details"), "no directory").unwrap();
    let error = fixture.write("progress.md", "x", NONE).unwrap_err().to_string();
    assert!(error.contains("cannot be opened"), "{error}");
}
