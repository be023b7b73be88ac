//! Many concurrent writers, in threads and in processes.

use super::*;
use crate::bank::ledger::Record;
use std::collections::BTreeMap;
use std::process::Command;

/// The number of writes of each writer.
const WRITES: usize = 15;

const NOTES: [&str; 3] = ["activeContext.md", "progress.md", "details/a.md"];

/// Writes [`WRITES`] contents, and returns them. Each content names the hash that its writer had read.
fn write_notes(skill_dir: &Path, writer: &str) -> Vec<String> {
    let bank = Bank::new(skill_dir, writer);
    let mut written = Vec::new();
    while written.len() < WRITES {
        let number = written.len();
        let note = NOTES[number % NOTES.len()];
        let hash = match bank.read(&json!({ "file": note }).to_string()) {
            Ok(read) => {
                let (_, summary) = read.rsplit_once('[').unwrap();
                hash_in(summary)
            }
            Err(missing) => {
                assert!(missing.to_string().contains("does not exist yet"), "{missing}");
                NONE.to_owned()
            }
        };
        let content = format!("{writer} {number} after {hash}\n");
        match bank.write(&request(note, &content, &hash).to_string(), &author(&format!("{number}-{writer}"))) {
            Ok(_) => written.push(content),
            Err(conflict) => {
                let conflict = conflict.to_string();
                assert!(conflict.contains("othing was written") || conflict.contains("was not written"), "{conflict}");
            }
        }
    }
    written
}

/// Asserts that each write has replaced the content that its writer had read.
fn assert_one_history(fixture: &Fixture, written: &[String]) {
    let by_digest: BTreeMap<String, &String> =
        written.iter().map(|content| (NoteContent::new(content.clone().into()).digest.to_string(), content)).collect();
    let claims = fixture.claims();
    assert_eq!(claims.len(), written.len());
    let mut last: BTreeMap<String, bloomery_crds::Digest> = BTreeMap::new();
    for claim in claims {
        let record: Record = serde_json::from_str(&fixture.get(&format!(".ledger/{claim}"))).unwrap();
        let before = last.insert(record.file.clone(), record.digest.clone());
        assert_eq!(before, record.replaced, "{claim}");
        let read = before.map_or_else(|| NONE.to_owned(), |digest| note_content::hash(&digest).to_owned());
        assert!(by_digest[record.digest.as_str()].ends_with(&format!("after {read}\n")), "{claim}");
    }
    for (note, digest) in last {
        assert_eq!(NoteContent::new(fixture.get(&note).into()).digest, digest);
    }
    assert_eq!(fixture.staged_files(), [""; 0]);
}

#[test]
fn concurrent_writes_of_threads_form_one_history() {
    let fixture = Fixture::new();
    let skill_dir = fixture.dir.path();
    let written: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..6).map(|number| scope.spawn(move || write_notes(skill_dir, &format!("thread-{number}")))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_one_history(&fixture, &written);
}

#[test]
fn concurrent_writes_of_processes_form_one_history() {
    let fixture = Fixture::new();
    let child = |number: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "bank::tests::racing::write_notes_as_a_child_process", "--ignored", "--nocapture"])
            .env("BLOOMERY_TEST_BANK", fixture.dir.path())
            .env("BLOOMERY_TEST_WRITER", format!("process-{number}"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..3).map(child).collect();
    let mut written = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        let own =
            text.lines().filter_map(|line| line.split_once("process-").map(|(_, rest)| format!("process-{rest}\n")));
        written.extend(own);
    }
    assert_eq!(written.len(), 3 * WRITES);
    assert_one_history(&fixture, &written);
}

#[test]
#[ignore = "only the test above runs it, as a child process"]
fn write_notes_as_a_child_process() {
    let (Ok(skill_dir), Ok(writer)) = (std::env::var("BLOOMERY_TEST_BANK"), std::env::var("BLOOMERY_TEST_WRITER"))
    else {
        return;
    };
    for content in write_notes(Path::new(&skill_dir), &writer) {
        print!("{content}");
    }
}
