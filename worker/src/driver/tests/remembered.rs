//! The memory bank: what other Jobs have left is read at the start, and what this one leaves goes the way of every effect.

use super::*;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::Event;
use bloomery_engine::event::ContextKind;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use serde_json::{Value, json};

const SECRET: &str = "correct-horse-battery";

async fn stand(bank: Option<&str>, script: Vec<Answer>) -> Stand {
    let mut stand = Stand::new(script, Refund::Answers).await;
    stand.skill.memory = bank.map(|bank| serde_json::from_value(json!({ "bank": bank })).unwrap());
    stand
}

fn put(stand: &Stand, note: &str, content: &str) {
    let file = stand.memory().join("memory-bank").join(note);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

fn held(stand: &Stand, note: &str) -> Option<String> {
    fs::read_to_string(stand.memory().join("memory-bank").join(note)).ok()
}

fn note(content: &str, expect: &str) -> Value {
    json!({"file": "activeContext.md", "content": content, "expect": expect})
}

fn done() -> Answer {
    Answer::Says("Noted.\n```json\n{\"status\": \"noted\"}\n```\n")
}

fn writes() -> Vec<Answer> {
    vec![
        Answer::Calls(vec![("memory_write", note("Orders of 2025 are archived.\n", "none"))]),
        Answer::Calls(vec![("memory_read", json!({"file": "activeContext.md"}))]),
        done(),
    ]
}

/// The answers of calls, as the log has them.
fn answers(stand: &Stand) -> Vec<String> {
    let text = |event| match event {
        Event::ToolCompleted { text, .. } | Event::ToolFailed { text, .. } => Some(text),
        _ => None,
    };
    stand.log().into_iter().filter_map(|entry| text(entry.event)).collect()
}

#[tokio::test]
async fn a_note_is_recorded_with_its_job_and_the_line_that_asked_for_it() {
    let stand = stand(Some("write"), writes()).await;
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    assert_eq!(held(&stand, "activeContext.md").unwrap(), "Orders of 2025 are archived.\n");
    let record: Value = serde_json::from_str(&held(&stand, ".ledger/00000000000000000001.json").unwrap()).unwrap();
    let started = stand.log().into_iter().find_map(|entry| match entry.event {
        Event::ToolStarted { call } => Some(call.to_string()),
        _ => None,
    });
    assert_eq!((&record["runKey"], record["call"].as_str()), (&json!("k-1"), started.as_deref()));
    let answers = answers(&stand);
    assert!(answers[0].starts_with("Wrote activeContext.md: a new note"), "{answers:?}");
    assert!(answers[1].starts_with("Orders of 2025 are archived.\n[activeContext.md: 29 bytes, hash "), "{answers:?}");
}

#[tokio::test]
async fn notes_are_read_at_the_start_and_not_written_unless_the_skill_says_so() {
    let stand = stand(None, writes()).await;
    put(&stand, "progress.md", "Half done.\n");
    stand.run(1).await;
    assert_eq!(held(&stand, "activeContext.md"), None);
    let parts = stand.log().into_iter().find_map(|entry| match entry.event {
        Event::ContextGathered { parts } => Some(parts),
        _ => None,
    });
    let parts = parts.unwrap();
    assert!(
        parts.iter().all(|part| part.kind == ContextKind::MemoryBank) && parts[0].text == "Half done.\n",
        "{parts:?}"
    );
    let asked = stand.model.requests();
    let system = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("Of `progress.md`:\n<memory_bank id="), "{system}");
    // What another Job writes meanwhile is not sent: each request begins as the one before it did.
    assert!(
        asked
            .iter()
            .filter(|request| request["tools"].is_array())
            .all(|request| request["messages"][0]["content"] == system)
    );
    let tools: Vec<&str> =
        asked[0]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    assert!(tools.contains(&"memory_read") && !tools.contains(&"memory_write"), "{tools:?}");
}

#[tokio::test]
async fn a_bank_that_is_off_is_not_looked_at() {
    let stand = stand(Some("off"), vec![done()]).await;
    put(&stand, "progress.md", "Half done.\n");
    stand.run(1).await;
    assert!(!stand.events().contains(&"context.gathered"));
    assert!(!stand.model.requests()[0].to_string().contains("Half done"));
}

/// A secret is neither written to a note nor read from one.
#[tokio::test]
async fn no_secret_goes_into_a_note_or_comes_out_of_one() {
    let script = vec![
        Answer::Calls(vec![("memory_write", note(&format!("The password is {SECRET}.\n"), "none"))]),
        Answer::Calls(vec![("memory_read", json!({"file": "progress.md"}))]),
        done(),
    ];
    let mut stand = stand(Some("write"), script).await;
    let path = stand.dir.path().join("password");
    fs::write(&path, SECRET).unwrap();
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: "ci".into(), key: "password".into() };
    let source = ResourceSource::Secret(file);
    stand.resources = vec![BoundResource { name: "password".into(), kind: ResourceType::Credential, source }];
    put(&stand, "progress.md", &format!("Somebody has noted {SECRET}.\n"));
    stand.run(1).await;
    assert_eq!(held(&stand, "activeContext.md"), None);
    let answers = answers(&stand);
    assert!(answers[0].starts_with("Somebody has noted [redacted: password]."), "{answers:?}");
    let asked = stand.model.requests();
    let prompt = asked[0].to_string();
    assert!(prompt.contains("Somebody has noted [redacted: password].") && !prompt.contains(SECRET), "{prompt}");
    // The model's own call stands in the history without it, too.
    assert!(asked.iter().all(|request| !request.to_string().contains(SECRET)));
}

/// Killed anywhere: a note is written, once, and nobody has to be asked.
#[tokio::test]
async fn killed_anywhere_a_note_is_written_once() {
    let files = Faulty::default();
    let operations = files.operations.clone();
    let undisturbed = stand(Some("write"), writes()).await;
    undisturbed.run_with(1, files, Stop::default()).await.unwrap();
    for at in 0..operations.get() {
        let stand = stand(Some("write"), writes()).await;
        let _ = stand.run_with(1, Faulty::killed(at, Fault::KillAfter), Stop::default()).await;
        assert_eq!(stand.run(2).await, Exit::Finished, "{at}");
        assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded, "{at}");
        assert_eq!(held(&stand, "activeContext.md").unwrap(), "Orders of 2025 are archived.\n");
        assert_eq!(held(&stand, ".ledger/00000000000000000002.json"), None, "{at}");
    }
}
