//! The file tools: their effects are recorded and recovered like every other effect.

use super::*;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::Event;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_testkit::sample;
use serde_json::json;
use std::path::PathBuf;

fn code(stand: &Stand) -> PathBuf {
    stand.dir.path().join("code")
}

/// Returns a stand whose Job binds a directory with one file.
async fn stand(script: Vec<Answer>) -> Stand {
    let mut stand = Stand::new(script, Refund::Answers).await;
    fs::create_dir(code(&stand)).unwrap();
    fs::write(code(&stand).join("a.md"), "one\ntwo\n").unwrap();
    let source = ResourceSource::Mount { path: code(&stand).to_str().unwrap().into(), read_only: false };
    stand.resources = vec![BoundResource { name: "code".into(), kind: ResourceType::Filesystem, source }];
    stand
}

fn edits() -> Vec<Answer> {
    vec![
        Answer::Calls(vec![("read_file", json!({"path": "a.md"})), ("search_files", json!({"pattern": "t.o"}))]),
        Answer::Calls(vec![
            ("edit_file", json!({"path": "a.md", "oldText": "two", "newText": "two, and more"})),
            ("write_file", json!({"path": "b.md", "content": "new\n"})),
        ]),
        Answer::Says("Edited.\n```json\n{\"status\": \"edited\"}\n```\n"),
    ]
}

fn content(stand: &Stand, name: &str) -> String {
    fs::read_to_string(code(stand).join(name)).unwrap()
}

#[tokio::test]
async fn files_are_read_and_changed_and_each_change_is_started_in_the_log() {
    let stand = stand(edits()).await;
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    assert_eq!((content(&stand, "a.md").as_str(), content(&stand, "b.md").as_str()), ("one\ntwo, and more\n", "new\n"));
    let calls: Vec<&str> = stand
        .events()
        .into_iter()
        .filter(|name| ["tool.started", "tool.completed", "tool.failed"].contains(name))
        .collect();
    assert_eq!(
        calls,
        ["tool.completed", "tool.completed", "tool.started", "tool.completed", "tool.started", "tool.completed"]
    );
    // File tools do not call the MCP server.
    assert!(stand.shop.effects().is_empty());
}

/// An edit is made at most once. An edit whose outcome is unknown is not repeated, but the write of a whole file is.
#[tokio::test]
async fn a_kill_at_any_operation_does_not_repeat_an_edit() {
    let files = Faulty::default();
    let operations = files.operations.clone();
    stand(edits()).await.run_with(1, files, Stop::default()).await.unwrap();
    let mut lost = 0;
    for at in (0..operations.get()).step_by(sample::distance()) {
        let stand = stand(edits()).await;
        let _ = stand.run_with(1, Faulty::killed(at, Fault::KillAfter), Stop::default()).await;
        assert_eq!(stand.run(2).await, Exit::Finished, "{at}");
        let end = outcome(&stand, 2);
        let is_edited = content(&stand, "a.md") == "one\ntwo, and more\n";
        match end {
            OutcomeCode::Succeeded => assert!(is_edited && content(&stand, "b.md") == "new\n", "{at}"),
            end => {
                assert_eq!(end, OutcomeCode::ToolIndeterminate, "{at}");
                assert!(is_edited || content(&stand, "a.md") == "one\ntwo\n", "{at}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0, "no kill fell within the edit");
}

#[tokio::test]
async fn the_context_is_gathered_once_and_is_in_the_prompt() {
    let mut stand = stand(edits()).await;
    stand.skill.context = serde_json::from_value(json!({"projectStructure": true, "recentChanges": true})).unwrap();
    stand.run(1).await;
    let gathered: Vec<Event> = stand.log().into_iter().map(|entry| entry.event).collect();
    let parts = gathered.iter().find_map(|event| match event {
        Event::ContextGathered { parts } => Some(parts.clone()),
        _ => None,
    });
    let parts = parts.unwrap();
    assert_eq!(parts.len(), 2);
    assert!(parts[0].text.starts_with("a.md  8 bytes\n") && parts[1].text.contains("Z  a.md\n"), "{parts:?}");
    let asked = stand.model.requests();
    let system = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains(&parts[0].text) && system.contains("# Resources\n- `code`: files at "), "{system}");
    // The context is not gathered again, so every request has the same system prompt.
    let mut of_the_loop = asked.iter().filter(|request| request["tools"].is_array());
    assert!(of_the_loop.all(|request| request["messages"][0]["content"] == system));
}
