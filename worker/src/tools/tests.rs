use super::*;
use crate::focus::BUDGET;
use crate::log::files::Disk;
use bloomery_crds::Digest;
use bloomery_engine::event::CallId;
use bloomery_engine::tool::ToolSource;

const PLENTY: Duration = Duration::from_mins(1);

fn id() -> CallId {
    CallId::new(7, 0)
}

async fn asked(core: &CoreTools, tool: &str, arguments: &str) -> Event {
    let (id, key) = (id(), Digest::of_bytes(b""));
    let source = ToolSource::Core;
    let call = ToolCall { id: &id, tool, arguments, key, idempotent: true, read_only: true, source };
    core.call(&call, PLENTY, &Disk).await
}

#[tokio::test]
async fn a_result_that_was_put_aside_is_read_by_its_handle() {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(FocusCache::new(memory.path(), "uid-1", BUDGET));
    let text = "row\n".repeat(1000);
    let handle = core.focus().keep(&Disk, &[&text]).pop().unwrap().unwrap();
    let answer = asked(&core, FOCUS_READ, &format!("{{\"handle\":\"{handle}\",\"bytes\":4}}")).await;
    let read = "row\n\n[bytes 0 to 4 of 4000; go on with offset 4]".to_owned();
    assert_eq!(answer, Event::ToolCompleted { call: id(), text: read });
}

#[tokio::test]
async fn what_cannot_be_read_is_a_tool_error() {
    let memory = tempfile::tempdir().unwrap();
    let core = CoreTools::new(FocusCache::new(memory.path(), "uid-1", BUDGET));
    let handle = Digest::of_bytes(b"gone");
    let gone = asked(&core, FOCUS_READ, &format!("{{\"handle\":\"{handle}\"}}")).await;
    assert!(matches!(gone, Event::ToolFailed { text, .. } if text.contains("not kept any more")));
    let unknown = asked(&core, "use_skill", "{}").await;
    assert!(matches!(unknown, Event::ToolFailed { text, .. } if text.contains("no tool use_skill")));
}
