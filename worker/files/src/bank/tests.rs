//! The bank on real directories.

mod consulting;
mod first;
mod hostile;
mod interleaved;
mod racing;

use super::*;
use crate::marks::Marks;
use serde_json::{Value, json};
use std::fs;

/// A skill directory.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Creates the notes, as a person would.
    fn with_notes(notes: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (name, content) in notes {
            fixture.put(name, content);
        }
        fixture
    }

    fn bank(&self) -> Bank {
        Bank::new(self.dir.path(), "uid-1")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(DIR).join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        self.bank().read(&json!({ "file": file }).to_string())
    }

    fn write(&self, file: &str, content: &str, expect: &str) -> Result<String, Error> {
        self.write_as(&request(file, content, expect), "7-0")
    }

    /// Calls `memory_write` with this call ID. Panics if the outcome is unknown.
    fn write_as(&self, request: &Value, call: &str) -> Result<String, Error> {
        self.bank().write(&request.to_string(), &author(call)).map_err(|fault| match fault {
            WriteError::Unwritten(error) => error,
            WriteError::Unknown(text) => panic!("{text}"),
        })
    }

    /// Returns the file names of the claims.
    fn claims(&self) -> Vec<String> {
        self.ledger_files(/*are_claims*/ true)
    }

    /// Returns the names of the other files in the ledger, which are staged files.
    fn staged_files(&self) -> Vec<String> {
        self.ledger_files(/*are_claims*/ false)
    }

    fn ledger_files(&self, are_claims: bool) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(".ledger")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // The name of a claim has 20 digits and `.json`.
        let mut names: Vec<String> = names.filter(|name| (name.len() == 25) == are_claims).collect();
        names.sort();
        names
    }
}

fn request(file: &str, content: &str, expect: &str) -> Value {
    json!({"file": file, "content": content, "expect": expect})
}

fn author(call: &str) -> Author {
    Author {
        job: "acme/refund".into(),
        run_key: "k-1".into(),
        call: call.into(),
        time: "2026-01-01T00:00:00.000Z".into(),
    }
}

/// Returns the hash in an answer.
fn hash_in(answer: &str) -> String {
    let (_, rest) = answer.rsplit_once("hash ").or_else(|| answer.rsplit_once("hash is ")).unwrap();
    rest.trim_start_matches("is ").trim_start_matches("now ").chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[test]
fn a_note_is_written_and_read_with_its_hash_and_its_author() {
    let fixture = Fixture::new();
    let absent = fixture.read("progress.md").unwrap_err().to_string();
    assert!(absent.contains("progress.md does not exist yet") && absent.contains("set expect to none"), "{absent}");
    let wrote = fixture.write("progress.md", "One.\n", NONE).unwrap();
    assert!(wrote.starts_with("Wrote progress.md: a new note of 5 bytes. Its hash is now "), "{wrote}");
    let read = fixture.read("progress.md").unwrap();
    let expected = format!(
        "One.\n[progress.md: 5 bytes, hash {}, written by Job `acme/refund` at `2026-01-01T00:00:00.000Z`]",
        hash_in(&wrote)
    );
    assert_eq!(read, expected);
    let wrote = fixture.write("progress.md", "Two.\n", &hash_in(&read)).unwrap();
    assert!(wrote.starts_with("Wrote progress.md: 5 bytes in place of 5"), "{wrote}");
    assert_eq!(fixture.get("progress.md"), "Two.\n");
    fixture.write("details/api-v2.md", "Slow.\n", NONE).unwrap();
    assert_eq!(fixture.get("details/api-v2.md"), "Slow.\n");
    assert_eq!((fixture.claims().len(), fixture.staged_files()), (3, Vec::new()));
    let record: Value = serde_json::from_str(&fixture.get(".ledger/00000000000000000002.json")).unwrap();
    assert_eq!(
        (&record["file"], &record["job"], &record["call"]),
        (&json!("progress.md"), &json!("acme/refund"), &json!("7-0"))
    );
}

#[test]
fn writing_the_same_content_again_changes_nothing_with_any_expected_hash() {
    let fixture = Fixture::new();
    fixture.write("progress.md", "One.\n", NONE).unwrap();
    let again = fixture.write("progress.md", "One.\n", NONE).unwrap();
    assert!(again.contains("Nothing was changed"), "{again}");
    assert_eq!(fixture.claims().len(), 1);
}

#[test]
fn a_write_with_another_hash_is_refused_and_returns_the_current_hash() {
    let fixture = Fixture::with_notes(&[("activeContext.md", "By hand.\n")]);
    for expect in [NONE, "0123456789abcdef", ""] {
        let conflict = fixture.write("activeContext.md", "Mine.\n", expect).unwrap_err().to_string();
        assert!(conflict.contains("Read it again") && conflict.contains("Nothing was written"), "{conflict}");
        let now = hash_in(&conflict);
        assert_eq!(now, hash_in(&fixture.read("activeContext.md").unwrap()));
    }
    let gone = fixture.write("progress.md", "Mine.\n", "0123456789abcdef").unwrap_err().to_string();
    assert!(gone.contains("set expect to none"), "{gone}");
    assert_eq!(fixture.get("activeContext.md"), "By hand.\n");
    let hash = hash_in(&fixture.read("activeContext.md").unwrap());
    fixture.write("activeContext.md", "Mine.\n", &hash).unwrap();
    // A person changes the note, so the note has no known author.
    fixture.put("activeContext.md", "By hand again.\n");
    assert!(!fixture.read("activeContext.md").unwrap().contains("written by"));
    let mine = request("activeContext.md", "Mine, too.\n", NoteContent::new("Mine.\n".into()).hash());
    let conflict = fixture.write_as(&mine, "9-0").unwrap_err().to_string();
    assert!(conflict.contains("has changed since you read it"), "{conflict}");
    assert_eq!(fixture.get("activeContext.md"), "By hand again.\n");
}

/// A call whose answer was lost is retried. The earlier write of the same call is not a conflict.
#[test]
fn a_retried_write_that_was_replaced_since_succeeds() {
    let fixture = Fixture::new();
    fixture.write("progress.md", "One.\n", NONE).unwrap();
    let hash = hash_in(&fixture.read("progress.md").unwrap());
    fixture.bank().write(&request("progress.md", "Two.\n", &hash).to_string(), &author("9-0")).unwrap();
    let again = fixture.write("progress.md", "One.\n", NONE).unwrap();
    assert!(again.contains("Another write has changed it since"), "{again}");
    assert_eq!(fixture.get("progress.md"), "Two.\n");
    // The same call with another content is a conflict.
    let other = fixture.write("progress.md", "Three.\n", NONE).unwrap_err().to_string();
    assert!(other.contains("has changed since you read it"), "{other}");
}

#[test]
fn only_long_core_notes_get_the_advice_to_shorten_them() {
    let fixture = Fixture::new();
    let long = "word ".repeat(ADVISED_CORE_WORDS + 1);
    let wrote = fixture.write("techContext.md", &long, NONE).unwrap();
    assert!(wrote.contains("has 301 words") && wrote.contains("details/"), "{wrote}");
    assert!(fixture.read("techContext.md").unwrap().contains("has 301 words"));
    assert!(!fixture.write("details/long.md", &long, NONE).unwrap().contains("words"));
}

#[test]
fn a_write_above_a_limit_is_refused() {
    let fixture = Fixture::new();
    let too_large = fixture.write("progress.md", &"x".repeat(MAX_NOTE_BYTES + 1), NONE).unwrap_err().to_string();
    assert!(too_large.contains("16385 bytes") && too_large.contains("Nothing was written"), "{too_large}");
    let nul = fixture.write("progress.md", "a\0b", NONE).unwrap_err().to_string();
    assert!(nul.contains("NUL"), "{nul}");
    for number in 0..MAX_DETAILS {
        fixture.put(&format!("details/{number}.md"), "x");
    }
    let many = fixture.write("details/more.md", "x", NONE).unwrap_err().to_string();
    assert!(many.contains("has 64 notes"), "{many}");
    // An existing note may change.
    fixture.write("details/0.md", "y", &hash_in(&fixture.read("details/0.md").unwrap())).unwrap();
    for number in 0..4 {
        fixture.put(&format!("details/{number}.md"), "x".repeat(200 * 1024));
    }
    let full = fixture.write("progress.md", "x", NONE).unwrap_err().to_string();
    assert!(full.contains("limit of 524288"), "{full}");
    assert!(!fixture.at("progress.md").exists() && fixture.staged_files().is_empty());
    // A note that becomes shorter is accepted, although the bank is above its limit.
    let hash = hash_in(&fixture.read("details/0.md").unwrap());
    fixture.write("details/0.md", &"y".repeat(MAX_NOTE_BYTES), &hash).unwrap();
    let hash = hash_in(&fixture.read("details/9.md").unwrap());
    assert!(fixture.write("details/9.md", "xx", &hash).unwrap_err().to_string().contains("limit of 524288"));
    fixture.write("details/9.md", "y", &hash).unwrap();
}

#[test]
fn invalid_arguments_are_refused() {
    let bank = Fixture::new().bank();
    for arguments in ["", "[]", "{}", "{\"file\":1}", "{\"file\":\"progress.md\",\"path\":\"x\"}"] {
        assert!(bank.read(arguments).unwrap_err().to_string().contains("are invalid"), "{arguments}");
        assert!(bank.write(arguments, &author("1-0")).unwrap_err().to_string().contains("are invalid"), "{arguments}");
    }
}

#[test]
fn a_mark_does_not_overwrite_a_secret_in_a_note() {
    let fixture = Fixture::with_notes(&[("projectbrief.md", "The key is sk-1234567890.\n")]);
    let bank = fixture.bank().with_secrets(Marks::new(vec!["[redacted: default]".into()]));
    let digest = bloomery_crds::Digest::of_bytes(fixture.get("projectbrief.md").as_bytes());
    let hash = note_content::hash(&digest);
    let write = |content: &str| bank.write(&request("projectbrief.md", content, hash).to_string(), &author("7-0"));
    let fault = write("The key is [redacted: default]. More.\n").unwrap_err();
    assert!(matches!(&fault, WriteError::Unwritten(why) if why.to_string().contains("replaces a secret")), "{fault}");
    assert_eq!(fixture.get("projectbrief.md"), "The key is sk-1234567890.\n");
}
