//! Limits over all Jobs of a Skill: the ledger in the memory counts a call before it is sent.

use super::*;
use bloomery_engine::Event;
use bloomery_engine::event::ReservationAnswer;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use serde_json::json;

async fn limited(max: u32) -> Stand {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let limit =
        json!({"tool": "refund", "sum": "amount", "per": "skill", "window": "24h", "max": max, "action": "deny"});
    stand.skill.policy = Some(serde_json::from_value(json!({ "limits": [limit] })).unwrap());
    stand
}

/// Returns the answers of the ledger in the log.
fn answers(stand: &Stand) -> Vec<ReservationAnswer> {
    let answer = |event| if let Event::LimitsReserved { answer, .. } = event { Some(answer) } else { None };
    stand.log().into_iter().filter_map(|entry| answer(entry.event)).collect()
}

fn ledger(stand: &Stand) -> String {
    let mut states: Vec<_> =
        fs::read_dir(stand.memory().join("limits")).unwrap().map(|entry| entry.unwrap().path()).collect();
    states.sort();
    fs::read_to_string(states.last().unwrap()).unwrap()
}

#[tokio::test]
async fn a_call_is_reserved_in_the_memory_before_it_is_sent() {
    let stand = limited(20).await;
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let [answer] = answers(&stand).try_into().unwrap();
    assert!(answer.reserved, "{answer:?}");
    assert!(ledger(&stand).contains(r#""tool":"refund""#), "{}", ledger(&stand));
    let events = stand.events();
    let place = |name: &str| events.iter().position(|event| *event == name).unwrap();
    assert!(place("limits.reserved") < place("tool.started"), "{events:?}");
}

#[tokio::test]
async fn a_call_beyond_the_limit_is_not_sent() {
    let stand = limited(19).await;
    stand.run(1).await;
    let refunds = stand.shop.effects().into_iter().filter(|(tool, _)| tool == "refund").count();
    assert_eq!((refunds, answers(&stand).len()), (0, 1));
}

#[tokio::test]
async fn a_worker_that_is_killed_anywhere_reserves_a_call_once() {
    let mut stand = limited(20).await;
    for at in (0..).step_by(3) {
        stand.clear();
        let killed = Faulty::killed(at, Fault::KillAfter);
        let operations = killed.operations.clone();
        let ended = stand.run_with(1, killed, Stop::default()).await;
        if operations.get() <= at {
            assert!(ended.is_ok());
            return;
        }
        stand.run(2).await;
        let refunds = stand.shop.effects().into_iter().filter(|(tool, _)| tool == "refund").count();
        assert!(refunds <= 1, "killed at {at}");
        assert_eq!(ledger(&stand).matches(r#""tool":"refund""#).count(), 1, "killed at {at}");
    }
}
