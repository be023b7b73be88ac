use super::*;
use crate::focus::DEFAULT_BUDGET_BYTES;
use bloomery_crds::Digest;
use bloomery_crds::run::ResourceSource;
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::core_tools::files::{
    APPLY_PATCH, DEFAULT_DEPTH, EDIT_FILE, LIST_FILES, READ_FILE, SEARCH_FILES, WRITE_FILE,
};
use bloomery_engine::core_tools::{MEMORY_READ, MEMORY_WRITE};
use bloomery_engine::event::CallId;
use bloomery_engine::tool::ToolSource;
use bloomery_journal::files::Disk;
use rstest::rstest;

/// A time limit that no call reaches.
const PLENTY: Duration = Duration::from_mins(1);

fn id() -> CallId {
    CallId::new(7, 0)
}

async fn perform(core: &CoreTools, tool: &str, arguments: &str) -> Event {
    call(core, tool, arguments, PLENTY, &Disk).await
}

/// Makes a call of a core tool.
pub(super) async fn call(core: &CoreTools, tool: &str, arguments: &str, within: Duration, files: &impl Files) -> Event {
    call_again(core, tool, arguments, (within, false), files).await
}

/// Makes a call of a core tool, which may have been sent before.
async fn call_again(
    core: &CoreTools,
    tool: &str,
    arguments: &str,
    (within, sent_before): (Duration, bool),
    files: &impl Files,
) -> Event {
    let (id, key) = (id(), Digest::of_bytes(b""));
    let source = ToolSource::Core;
    let call = ToolCall {
        id: &id,
        tool,
        arguments,
        definition: &key.clone(),
        key,
        idempotent: true,
        read_only: true,
        sent_before,
        source,
        timeout_seconds: None,
    };
    core.call(&call, within, files).await
}

/// The first try may have had an effect, even if the second one fails.
#[tokio::test]
async fn a_call_that_was_sent_before_is_indeterminate_if_it_fails_now() {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(&[], FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES));
    let failed = perform(&core, WRITE_FILE, "{}").await;
    let Event::ToolFailed { text: why, .. } = failed else { panic!("{failed:?}") };
    let lost = call_again(&core, WRITE_FILE, "{}", (PLENTY, true), &Disk).await;
    let text = format!("its answer was lost, and the call could not be repeated: {why}");
    assert_eq!(lost, Event::ToolIndeterminate { call: id(), text });
}

#[tokio::test]
async fn a_stored_result_is_read_by_its_handle() {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(&[], FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES));
    let text = "row\n".repeat(1000);
    let handle = core.focus().keep(&Disk, &[&text]).pop().unwrap().unwrap();
    let answer = perform(&core, FOCUS_READ, &format!("{{\"handle\":\"{handle}\",\"bytes\":4}}")).await;
    let read = "row\n\n[bytes 0 to 4 of 4000; continue with offset 4]".to_owned();
    assert_eq!(answer, Event::ToolCompleted { call: id(), text: read });
}

#[tokio::test]
async fn an_absent_result_or_an_unknown_tool_fails_the_call() {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(&[], FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES));
    let handle = Digest::of_bytes(b"gone");
    let gone = perform(&core, FOCUS_READ, &format!("{{\"handle\":\"{handle}\"}}")).await;
    assert!(matches!(gone, Event::ToolFailed { text, .. } if text.contains("was removed")));
    let unknown = perform(&core, "use_skill", "{}").await;
    assert!(matches!(unknown, Event::ToolFailed { text, .. } if text.contains("no tool `use_skill`")));
}

#[tokio::test]
async fn texts_of_the_skill_are_read_in_the_pod() {
    let memory = tempfile::tempdir().unwrap();
    let skill = serde_json::json!({"problem": {"statement": "Help"}, "docs": "# Refunds\nWithin 30 days.\n"});
    let core = CoreTools::new(&[], FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES))
        .with_skill(serde_json::from_value(skill).unwrap());
    let read = perform(&core, SKILL_DOC, r##"{"section":"#refunds"}"##).await;
    assert_eq!(read, Event::ToolCompleted { call: id(), text: "# Refunds\nWithin 30 days.".to_owned() });
    let failed = perform(&core, SKILL_DOC, r##"{"section":"#refund"}"##).await;
    assert!(matches!(failed, Event::ToolFailed { text, .. } if text.contains("Did you mean #refunds?")));
    assert!(is_local(SKILL_DOC) && is_local(APPLY_FEATURE));
}

#[tokio::test]
async fn files_are_read_and_written_in_the_bound_directory() {
    let (memory, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = ResourceSource::Mount { path: project.path().to_str().unwrap().into(), read_only: false };
    let bound = [BoundResource { name: "code".into(), kind: ResourceType::Filesystem, source }];
    let core = CoreTools::new(&bound, FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES));
    let wrote = perform(&core, WRITE_FILE, r##"{"path":"a.md","content":"# A\n"}"##).await;
    let text = "Wrote `a.md`: a new file of 4 bytes.".to_owned();
    assert_eq!(wrote, Event::ToolCompleted { call: id(), text });
    let read = perform(&core, READ_FILE, r#"{"resource":"code","path":"a.md"}"#).await;
    let text = "# A\n[lines 1 to 1, bytes 0 to 4 of 4; end of file]".to_owned();
    assert_eq!(read, Event::ToolCompleted { call: id(), text });
    let failed = perform(&core, READ_FILE, r#"{"path":"../a.md"}"#).await;
    assert!(matches!(failed, Event::ToolFailed { text, .. } if text.contains("contains `..`")));
}

/// Returns the core tools of a Job that binds a writable directory, and whose secrets `redactor` knows.
fn tools_with_secrets(memory: &Path, project: &Path, redactor: &Redactor) -> CoreTools {
    let source = ResourceSource::Mount { path: project.to_str().unwrap().into(), read_only: false };
    let bound = [BoundResource { name: "code".into(), kind: ResourceType::Filesystem, source }];
    let core = CoreTools::new(&bound, FocusCache::new(memory, "uid-1", DEFAULT_BUDGET_BYTES));
    core.with_endpoints(&[], &bound, AddressPolicy::for_local_machine(), redactor.clone())
}

/// The model reads the mark in place of the secret, and then writes the whole file.
#[tokio::test]
async fn a_secret_in_a_file_is_not_replaced_by_its_mark() {
    let (memory, project, redactor) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Redactor::default());
    let core = tools_with_secrets(memory.path(), project.path(), &redactor);
    redactor.learn("default", b"sk-1234567890");
    let env = project.path().join(".env");
    std::fs::write(&env, "KEY=sk-1234567890\nDEBUG=no\n").unwrap();
    let read = redactor.redact_event(perform(&core, READ_FILE, r#"{"path":".env"}"#).await).unwrap();
    assert!(matches!(&read, Event::ToolCompleted { text, .. } if text.starts_with("KEY=[redacted: default]\n")));
    let arguments = r#"{"path":".env","content":"KEY=[redacted: default]\nDEBUG=yes\n"}"#;
    let failed = perform(&core, WRITE_FILE, arguments).await;
    assert!(matches!(&failed, Event::ToolFailed { text, .. } if text.contains("with edit_file")), "{failed:?}");
    assert_eq!(std::fs::read_to_string(&env).unwrap(), "KEY=sk-1234567890\nDEBUG=no\n");
}

#[test]
fn all_file_and_memory_tools_of_the_engine_are_implemented() {
    for name in [READ_FILE, LIST_FILES, SEARCH_FILES, WRITE_FILE, EDIT_FILE, APPLY_PATCH] {
        assert!(files::tool(name).is_some(), "{name}");
    }
    assert_eq!(bloomery_files::DEFAULT_DEPTH as u64, DEFAULT_DEPTH);
    for name in [MEMORY_READ, MEMORY_WRITE] {
        assert!(memory::tool(name).is_some(), "{name}");
    }
}

/// The only thread for file operations is blocked, as by a file system that does not answer.
#[rstest]
#[case::of_files(LIST_FILES, "{}")]
#[case::of_a_result(
    FOCUS_READ,
    "{\"handle\":\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}"
)]
fn a_call_that_does_not_end_in_time_is_indeterminate(#[case] tool: &str, #[case] arguments: &str) {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(&[], FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let blocking = tokio::task::spawn_blocking(move || blocked.recv());
        let (id, key) = (id(), Digest::of_bytes(b""));
        let source = ToolSource::Core;
        let call = ToolCall {
            id: &id,
            tool,
            arguments,
            definition: &key.clone(),
            key,
            idempotent: true,
            read_only: true,
            sent_before: false,
            source,
            timeout_seconds: None,
        };
        let outcome = core.call(&call, Duration::from_millis(1), &Disk).await;
        let text = format!("{tool} did not end within 1ms.");
        assert_eq!(outcome, Event::ToolIndeterminate { call: id.clone(), text });
        drop(release);
        blocking.await.unwrap().unwrap_err();
    });
}

/// The secret has several lines and two names. Its file is read by line and by offset.
#[tokio::test]
async fn no_part_of_a_secret_is_read_and_its_mark_is_not_written() {
    let (memory, project, redactor) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Redactor::default());
    let core = tools_with_secrets(memory.path(), project.path(), &redactor);
    let key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA1234\nQIDAQABAoIBAQCxyz\nab=\n-----END KEY-----";
    redactor.learn("PLANT", key.as_bytes());
    redactor.learn("tok", key.as_bytes());
    let file = project.path().join("key.pem");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    for line in 1..6 {
        let read = perform(&core, READ_FILE, &format!(r#"{{"path":"key.pem","line":{line},"lines":1}}"#)).await;
        assert!(
            matches!(&read, Event::ToolCompleted { text, .. } if text.starts_with("[redacted: PLANT]\n[")),
            "{read:?}"
        );
    }
    for offset in 0..key.len() {
        let read = perform(&core, READ_FILE, &format!(r#"{{"path":"key.pem","offset":{offset}}}"#)).await;
        assert!(
            matches!(&read, Event::ToolCompleted { text, .. } if text.starts_with("[redacted: PLANT]\n[")),
            "{read:?}"
        );
    }
    let found = perform(&core, SEARCH_FILES, r#"{"pattern":".","context":1}"#).await;
    assert!(
        matches!(&found, Event::ToolCompleted { text, .. } if !text.contains("MII") && !text.contains("ab=")),
        "{found:?}"
    );
    let hint = perform(&core, APPLY_PATCH, r#"{"patch":"--- a/key.pem\n+++ b/key.pem\n@@ -4 +4 @@\n-x\n+y\n"}"#).await;
    assert!(
        matches!(&hint, Event::ToolFailed { text, .. } if text.contains("but found `[redacted: PLANT]`")),
        "{hint:?}"
    );
    for name in ["PLANT", "tok"] {
        let arguments = format!(r#"{{"path":"key.pem","content":"[redacted: {name}]\n"}}"#);
        let failed = perform(&core, WRITE_FILE, &arguments).await;
        assert!(matches!(&failed, Event::ToolFailed { text, .. } if text.contains("with edit_file")), "{failed:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{key}\n"));
}
