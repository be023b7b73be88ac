//! Which of many tools the model is shown is asked once, and known for a while to the Skill's other Jobs.

use super::*;
use crate::recent;
use bloomery_crds::v1alpha1::ToolSelection;
use bloomery_engine::event::SelectedBy;

async fn stand() -> Stand {
    let done = Answer::Says("Done.\n```json\n{\"status\": \"none\"}\n```\n");
    let mut stand = Stand::new(vec![done], Refund::Answers).await;
    // Three beside focus_read, which stays.
    let engine = stand.skill.engine.get_or_insert_default();
    engine.tool_selection = Some(ToolSelection { max: Some(4), model: None });
    engine.finalization_gate = serde_json::from_value(serde_json::json!({"enabled": false})).unwrap();
    engine.reply_polisher = serde_json::from_value(serde_json::json!({"enabled": false})).unwrap();
    stand
}

fn selections(stand: &Stand) -> Vec<(usize, SelectedBy)> {
    let of = |entry: bloomery_engine::line::Entry| match entry.event {
        Event::ToolsSelected { tools, by, .. } => Some((tools.len(), by)),
        _ => None,
    };
    stand.log().into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn the_next_job_asks_no_more() {
    let mut stand = stand().await;
    stand.run(1).await;
    assert_eq!(selections(&stand), [(3, SelectedBy::Model)]);
    // Another Job, in the same memory.
    let (cache, kept) = (stand.memory().join(recent::DIR), stand.dir.path().join("kept"));
    fs::rename(&cache, &kept).unwrap();
    stand.clear();
    fs::rename(&kept, &cache).unwrap();
    let asked = stand.model.request_count();
    stand.run(1).await;
    assert_eq!(selections(&stand), [(3, SelectedBy::Memory)]);
    assert_eq!(stand.model.request_count(), asked + 1);
}
