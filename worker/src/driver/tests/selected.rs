//! A selection of tools is cached for other Jobs of the Skill.

use super::*;
use crate::shared_cache;
use bloomery_crds::v1alpha1::ToolSelection;
use bloomery_engine::event::SelectedBy;

async fn stand() -> Stand {
    let done = Answer::Says("Done.\n```json\n{\"status\": \"none\"}\n```\n");
    let mut stand = Stand::new(vec![done], Refund::Answers).await;
    // The limit includes `focus_read`, which is always selected. So the model selects three of the shop's four tools.
    let engine = stand.skill.engine.get_or_insert_default();
    engine.tool_selection = Some(ToolSelection { max: Some(4), model: None });
    engine.finalization_gate = serde_json::from_value(serde_json::json!({"enabled": false})).unwrap();
    engine.reply_polisher = serde_json::from_value(serde_json::json!({"enabled": false})).unwrap();
    stand
}

fn selections(stand: &Stand) -> Vec<(usize, SelectedBy)> {
    let selection = |entry: bloomery_engine::line::Entry| match entry.event {
        Event::ToolsSelected { tools, by, .. } => Some((tools.len(), by)),
        _ => None,
    };
    stand.log().into_iter().filter_map(selection).collect()
}

#[tokio::test]
async fn the_next_job_uses_the_cached_selection() {
    let mut stand = stand().await;
    stand.run(1).await;
    assert_eq!(selections(&stand), [(3, SelectedBy::Model)]);
    // Another Job, in the same memory.
    let (cache, kept) = (stand.memory().join(shared_cache::DIR), stand.dir.path().join("kept"));
    fs::rename(&cache, &kept).unwrap();
    stand.clear();
    fs::rename(&kept, &cache).unwrap();
    let asked = stand.model.request_count();
    stand.run(1).await;
    assert_eq!(selections(&stand), [(3, SelectedBy::Memory)]);
    assert_eq!(stand.model.request_count(), asked + 1);
}
