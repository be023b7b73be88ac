//! The memory bank: notes of other Jobs are read at the start, and a write is recorded and recovered like every other effect.

use super::*;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{CoreNote, ResourceType};
use bloomery_engine::Event;
use bloomery_engine::event::ContextKind;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_testkit::sample;
use serde_json::{Value, json};

const SECRET: &str = "correct-horse-battery";

async fn stand(bank: Option<&str>, script: Vec<Answer>) -> Stand {
    let mut stand = Stand::new(script, Refund::Answers).await;
    stand.skill.memory = bank.map(|bank| serde_json::from_value(json!({ "bank": bank })).unwrap());
    stand
}

fn write_note(stand: &Stand, note: &str, content: &str) {
    let file = stand.memory().join("memory-bank").join(note);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

fn content(stand: &Stand, note: &str) -> Option<String> {
    fs::read_to_string(stand.memory().join("memory-bank").join(note)).ok()
}

fn write_arguments(content: &str, expect: &str) -> Value {
    json!({"file": "activeContext.md", "content": content, "expect": expect})
}

fn done() -> Answer {
    Answer::Says("Noted.\n```json\n{\"status\": \"noted\"}\n```\n")
}

fn writes() -> Vec<Answer> {
    vec![
        Answer::Calls(vec![("memory_write", write_arguments("Orders of 2025 are archived.\n", "none"))]),
        Answer::Calls(vec![("memory_read", json!({"file": "activeContext.md"}))]),
        done(),
    ]
}

/// Returns the answers of calls in the log.
fn answers(stand: &Stand) -> Vec<String> {
    let text = |event| match event {
        Event::ToolCompleted { text, .. } | Event::ToolFailed { text, .. } => Some(text),
        _ => None,
    };
    stand.log().into_iter().filter_map(|entry| text(entry.event)).collect()
}

#[tokio::test]
async fn a_note_is_recorded_with_its_job_and_its_call() {
    let stand = stand(Some("write"), writes()).await;
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    assert_eq!(content(&stand, "activeContext.md").unwrap(), "Orders of 2025 are archived.\n");
    let record: Value = serde_json::from_str(&content(&stand, ".ledger/00000000000000000001.json").unwrap()).unwrap();
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
async fn notes_are_read_at_the_start_and_written_only_if_the_skill_permits_it() {
    let stand = stand(None, writes()).await;
    write_note(&stand, "progress.md", "Half done.\n");
    stand.run(1).await;
    assert_eq!(content(&stand, "activeContext.md"), None);
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
    // Later notes of other Jobs are not sent, so every request has the same system prompt.
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
async fn the_notes_of_the_skill_are_the_first_content_of_the_bank() {
    let mut stand = stand(None, vec![done()]).await;
    let notes = json!({"projectbrief": "Refunds.\n", "progress": "Nothing is done.\n", "details/api": "Slow.\n"});
    stand.skill.memory = serde_json::from_value(json!({ "notes": notes })).unwrap();
    stand.memory_scope = Some(vec![CoreNote::Projectbrief]);
    write_note(&stand, "progress.md", "Half done.\n");
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let contents = ["projectbrief.md", "progress.md", "details/api.md"].map(|note| content(&stand, note).unwrap());
    assert_eq!(contents, ["Refunds.\n", "Half done.\n", "Slow.\n"]);
    let prompt = stand.model.requests()[0]["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("Of `projectbrief.md`:") && prompt.contains("Refunds.\n"), "{prompt}");
    // The list of all notes has those beyond the scope too.
    assert!(prompt.contains("\nprogress.md  2 words") && prompt.contains("\ndetails/api.md  6 bytes"), "{prompt}");
    assert!(!prompt.contains("Half done."), "{prompt}");
}

#[tokio::test]
async fn the_notes_of_a_skill_whose_bank_is_off_are_not_written() {
    let mut stand = stand(None, vec![done()]).await;
    let memory = json!({"bank": "off", "notes": {"progress": "Nothing is done.\n"}});
    stand.skill.memory = serde_json::from_value(memory).unwrap();
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    assert_eq!(content(&stand, "progress.md"), None);
}

#[tokio::test]
async fn a_bank_that_is_off_is_not_read() {
    let stand = stand(Some("off"), vec![done()]).await;
    write_note(&stand, "progress.md", "Half done.\n");
    stand.run(1).await;
    assert!(!stand.events().contains(&"context.gathered"));
    assert!(!stand.model.requests()[0].to_string().contains("Half done"));
}

#[tokio::test]
async fn no_secret_is_written_to_a_note_or_read_from_one() {
    let script = vec![
        Answer::Calls(vec![("memory_write", write_arguments(&format!("The password is {SECRET}.\n"), "none"))]),
        Answer::Calls(vec![("memory_read", json!({"file": "progress.md"}))]),
        done(),
    ];
    let mut stand = stand(Some("write"), script).await;
    let path = stand.dir.path().join("password");
    fs::write(&path, SECRET).unwrap();
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: "ci".into(), key: "password".into() };
    let source = ResourceSource::Secret(file);
    stand.resources = vec![BoundResource { name: "password".into(), kind: ResourceType::Credential, source }];
    write_note(&stand, "progress.md", &format!("Somebody has noted {SECRET}.\n"));
    stand.run(1).await;
    assert_eq!(content(&stand, "activeContext.md"), None);
    let answers = answers(&stand);
    assert!(answers[0].starts_with("Somebody has noted [redacted: password]."), "{answers:?}");
    let asked = stand.model.requests();
    let prompt = asked[0].to_string();
    assert!(prompt.contains("Somebody has noted [redacted: password].") && !prompt.contains(SECRET), "{prompt}");
    // The history does not have the secret in the model's own call either.
    assert!(asked.iter().all(|request| !request.to_string().contains(SECRET)));
}

#[tokio::test]
async fn after_a_kill_at_any_operation_a_note_is_written_once() {
    let files = Faulty::default();
    let operations = files.operations.clone();
    let undisturbed = stand(Some("write"), writes()).await;
    undisturbed.run_with(1, files, Stop::default()).await.unwrap();
    for at in (0..operations.get()).step_by(sample::distance()) {
        let stand = stand(Some("write"), writes()).await;
        let _ = stand.run_with(1, Faulty::killed(at, Fault::KillAfter), Stop::default()).await;
        assert_eq!(stand.run(2).await, Exit::Finished, "{at}");
        assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded, "{at}");
        assert_eq!(content(&stand, "activeContext.md").unwrap(), "Orders of 2025 are archived.\n");
        assert_eq!(content(&stand, ".ledger/00000000000000000002.json"), None, "{at}");
    }
}
