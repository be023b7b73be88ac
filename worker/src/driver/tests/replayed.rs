//! A replay makes the same decisions and no calls (`docs/explanation/design.md`, invariant 10).

use super::*;
use crate::inputs::Inputs;
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::next;
use bloomery_journal::Store;
use bloomery_journal::fixture::checks::parse;
use bloomery_journal::fixture::{SOURCE, claim_at_once};
use bloomery_redact::Redactor;

fn fold(run: bloomery_engine::run::Run, log: &[Entry]) -> Conversation {
    let mut conversation = Conversation::new(run);
    for entry in log {
        conversation.apply(entry);
    }
    conversation
}

#[tokio::test]
async fn a_replay_up_to_any_event_leads_to_the_same_next_step() {
    let stand = Stand::with_twelve_steps().await;
    stand.run(1).await;
    let log = parse(&stand.lines(&Disk));
    // Checks that the script has led to these events, so that their replay is tested.
    for name in ["result.offloaded", "gate.ruled", "reply.polished", "tool.started"] {
        assert!(log.iter().any(|entry| entry.event.name() == name), "{name}");
    }
    let run = Inputs::read(&stand.args(1), Redactor::default()).unwrap().run;
    let mut live = Conversation::new(run.clone());
    let mut decided = Vec::new().into_iter();
    for (at, entry) in log.iter().enumerate() {
        let replayed = fold(run.clone(), &log[..at]);
        assert_eq!(next(&replayed), next(&live), "before event {}", at + 1);
        // The engine's own decisions equal the events in the log. A step may have several events. The driver requests no step while a
        // call runs, because the engine would take the call for lost.
        let in_flight = at > 0 && log[at - 1].event.name() == "tool.started";
        if decided.len() == 0
            && !in_flight
            && entry.event.name() != "epoch.started"
            && let Step::Record(events) = next(&replayed)
        {
            decided = events.into_iter();
        }
        if let Some(event) = decided.next() {
            assert_eq!(event, entry.event, "event {}", at + 1);
        }
        live.apply(entry);
    }
    let reported = stand.reports().pop().unwrap().report.projection;
    assert_eq!(project(&fold(run, &log), reported.log.clone()), reported);
}

#[tokio::test]
async fn a_claim_reads_the_whole_log_without_an_act() {
    let stand = Stand::with_twelve_steps().await;
    stand.run(1).await;
    let (asked, effects, reports) = (stand.model.request_count(), stand.shop.effects(), stand.reports().len());
    let inputs = Inputs::read(&stand.args(2), Redactor::default()).unwrap();
    let mut conversation = Conversation::new(inputs.run.clone());
    let store = Store::open(Disk, &stand.memory(), "k-1", "uid-2").unwrap();
    let claimed = claim_at_once(store, Chain::new(SOURCE), &mut conversation, 2).await.unwrap();
    assert_eq!(conversation.epoch(), 2);
    assert_eq!(conversation.outcome().unwrap().code, OutcomeCode::Succeeded);
    assert_eq!(
        project(&conversation, claimed.log.position()).usage,
        stand.reports().pop().unwrap().report.projection.usage
    );
    assert_eq!((stand.model.request_count(), stand.shop.effects(), stand.reports().len()), (asked, effects, reports));
}
