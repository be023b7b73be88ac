//! Many concurrent writers, in threads and in processes.

use super::*;
use crate::bank::ledger::Record;
use std::collections::BTreeMap;
use std::process::Command;

/// The number of writes of each writer.
const WRITES: usize = 15;

const NOTES: [&str; 3] = ["activeContext.md", "progress.md", "details/a.md"];

/// Writes [`WRITES`] contents. Each content names the hash that its writer had read.
fn writes(memory: &Path, who: &str) -> Vec<String> {
    let bank = Bank::new(memory, who);
    let mut written = Vec::new();
    while written.len() < WRITES {
        let number = written.len();
        let note = NOTES[number % NOTES.len()];
        let hash = match bank.read(&json!({ "file": note }).to_string()) {
            Ok(read) => {
                let (_, summary) = read.rsplit_once('[').unwrap();
                hash_in(summary)
            }
            Err(absent) => {
                assert!(absent.to_string().contains("does not exist yet"), "{absent}");
                NONE.to_owned()
            }
        };
        let content = format!("{who} {number} after {hash}\n");
        match bank.write(&request(note, &content, &hash).to_string(), &author(&format!("{number}-{who}"))) {
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
fn assert_one_history(stand: &Stand, written: &[String]) {
    let by_digest: BTreeMap<String, &String> =
        written.iter().map(|content| (NoteContent::new(content.clone().into()).digest.to_string(), content)).collect();
    let claims = stand.ledger(true);
    assert_eq!(claims.len(), written.len());
    let mut last: BTreeMap<String, bloomery_crds::Digest> = BTreeMap::new();
    for claim in claims {
        let record: Record = serde_json::from_str(&stand.get(&format!(".ledger/{claim}"))).unwrap();
        let before = last.insert(record.file.clone(), record.digest.clone());
        assert_eq!(before, record.replaced, "{claim}");
        let read = before.map_or_else(|| NONE.to_owned(), |digest| note_content::hash(&digest).to_owned());
        assert!(by_digest[record.digest.as_str()].ends_with(&format!("after {read}\n")), "{claim}");
    }
    for (note, digest) in last {
        assert_eq!(NoteContent::new(stand.get(&note).into()).digest, digest);
    }
    assert_eq!(stand.ledger(false), [""; 0]);
}

#[test]
fn threads_that_write_at_once_have_one_history() {
    let stand = Stand::new();
    let memory = stand.dir.path();
    let written: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..6).map(|number| scope.spawn(move || writes(memory, &format!("thread-{number}")))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_one_history(&stand, &written);
}

#[test]
fn processes_that_write_at_once_have_one_history() {
    let stand = Stand::new();
    let child = |number: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "bank::tests::racing::writes_for_another_process", "--ignored", "--nocapture"])
            .env("BLOOMERY_TEST_BANK", stand.dir.path())
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
    assert_one_history(&stand, &written);
}

#[test]
#[ignore = "a process of the test above"]
fn writes_for_another_process() {
    let (Ok(memory), Ok(who)) = (std::env::var("BLOOMERY_TEST_BANK"), std::env::var("BLOOMERY_TEST_WRITER")) else {
        return;
    };
    for content in writes(Path::new(&memory), &who) {
        print!("{content}");
    }
}
