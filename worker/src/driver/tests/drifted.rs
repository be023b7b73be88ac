//! Tools that change between two attempts.

use super::stopped::parked_after_the_reads;
use super::*;
use bloomery_crds::tool_pins::{ToolChange, ToolPins};
use bloomery_crds::v1alpha1::Verdict;
use bloomery_engine::Event;
use bloomery_engine::tool::ListedTool;

#[tokio::test]
async fn a_tool_that_changed_while_the_job_was_parked_is_denied() {
    let stand = parked_after_the_reads().await;

    *stand.shop.changed.lock().unwrap() = Some("refund");
    assert_eq!(stand.run(2).await, Exit::Finished);
    let log = stand.log();
    let epoch = log.iter().rposition(|entry| matches!(entry.event, Event::EpochStarted { .. })).unwrap();
    let drifted = Event::CatalogueDrifted { changed: vec!["refund".into()], missing: Vec::new(), added: Vec::new() };
    assert_eq!(log[epoch + 1].event, drifted);
    let verdicts = log[epoch..].iter().filter_map(|entry| match &entry.event {
        Event::ToolRuled { verdict, .. } => Some(*verdict),
        _ => None,
    });
    assert_eq!(verdicts.collect::<Vec<_>>(), [Verdict::Deny]);
    assert_eq!(stand.shop.effects(), []);
    let last = stand.reports().pop().unwrap().report;
    let remark = "The MCP server has changed the tool refund since the Job began: its calls are denied.";
    assert_eq!(last.projection.remarks.first().map(String::as_str), Some(remark));
}

#[tokio::test]
async fn a_tool_that_differs_from_its_pin_is_denied_from_the_first_listing() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let listed = stand.shop.list(Duration::ZERO).await.unwrap();
    stand.pins = Some(ToolPins::from_listed(listed.iter().map(ListedTool::pin).collect()));
    *stand.shop.changed.lock().unwrap() = Some("refund");
    stand.run(1).await;
    let log = stand.log();
    let fixed = log.iter().position(|entry| matches!(entry.event, Event::CatalogueFixed { .. })).unwrap();
    let change = ToolChange { tool: "refund".into(), change: "its description changed".into() };
    assert_eq!(log[fixed + 1].event, Event::CatalogueUnpinned { tools: vec![change] });
    assert_eq!(stand.shop.effects(), []);
    let last = stand.reports().pop().unwrap().report;
    assert!(last.projection.tools_changed);
}

#[tokio::test]
async fn an_attempt_continues_if_the_server_cannot_list_its_tools_at_the_start() {
    let stand = parked_after_the_reads().await;
    *stand.shop.failing_lists.lock().unwrap() = 1;
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
}
