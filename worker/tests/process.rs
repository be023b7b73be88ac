//! The worker as a process: the errors that it reports in its pod.

use bloomery_crds::Digest;
use rstest::rstest;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the program: this version, or the one that `hack/test-versions` names.
fn worker() -> PathBuf {
    std::env::var_os("BLOOMERY_FIRST_WORKER").unwrap_or_else(|| env!("CARGO_BIN_EXE_bloomery-worker").into()).into()
}

fn run_worker(dir: &Path, revision: &str, digest: &Digest) -> io::Result<Output> {
    fs::write(dir.join("revision.json"), revision)?;
    fs::write(dir.join("termination"), "")?;
    Command::new(worker())
        .current_dir(dir)
        .args(["run", "--revision", "revision.json", "--revision-digest", digest.as_str()])
        .args(["--job", "job.json", "--job-digest", digest.as_str()])
        .args(["--memory", "memory", "--token", "token", "--pod-uid", "uid-1", "--termination-log", "termination"])
        .output()
}

#[rstest]
#[case::edited("{\"version\": 1}", Digest::of_bytes(b"{}"), "the revision was changed after the operator wrote it")]
#[case::of_another_version("{\"version\": 2}", Digest::of_bytes(b"{\"version\": 2}"), "the revision cannot be read")]
#[case::of_a_newer_version(
    r#"{"version": 1, "minWorkerLevel": 9}"#,
    Digest::of_bytes(br#"{"version": 1, "minWorkerLevel": 9}"#),
    "the revision needs a worker of level 9"
)]
fn an_invalid_run_document_is_reported_in_the_termination_message_and_on_stderr(
    #[case] revision: &str,
    #[case] digest: Digest,
    #[case] says: &str,
) {
    let dir = tempfile::tempdir().unwrap();
    let output = run_worker(dir.path(), revision, &digest).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = fs::read_to_string(dir.path().join("termination")).unwrap();
    assert!(message.contains(says), "{message}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(says));
    assert!(output.stdout.is_empty());
    assert!(!dir.path().join("memory").exists());
}

#[test]
fn an_invalid_flag_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_bloomery-worker"))
        .args(["run", "--revision-digest", "sha256:short"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("--revision-digest") && stderr.contains("64 hex digits"), "{stderr}");
}
