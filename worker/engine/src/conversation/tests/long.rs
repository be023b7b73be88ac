//! A long conversation.

use crate::conversation::Conversation;
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::line::Chain;
use crate::next::next;
use crate::projection::project;
use crate::run::Run;
use bloomery_crds::limits::EffectiveLimits;
use serde_json::json;

const EVENTS: usize = 10_000;

#[test]
fn a_replay_of_ten_thousand_events_ends_in_the_same_state() {
    let limits =
        EffectiveLimits { steps: u32::MAX, tool_calls: u32::MAX, tokens: u64::MAX, duration_seconds: u64::MAX };
    let run = Run { limits, context_window: 1 << 40, ..run() };
    let order = |n: u32, tool: &'static str| (tool, json!({"order_id": format!("A-{n}")}));
    let answers =
        (0..2_000).map(|n| asks(&[order(n, "verify_identity"), order(n, "note"), order(n, "drop_tables")])).collect();
    let mut world = World::new(run.clone(), answers, ALL_WELL);
    // Stop between two answers: an open call caches its parsed arguments, which a replay does not.
    world.play(EVENTS).play_until(|conversation| conversation.calls().is_empty());
    assert!(world.log.len() >= EVENTS && world.conversation.outcome().is_none(), "{}", world.log.len());

    let (mut chain, mut folded) = (Chain::new("/test"), Conversation::new(run));
    for line in &world.log {
        folded.apply(&chain.read(line).unwrap());
    }
    let position = chain.position("jobs/x");
    assert_eq!(project(&folded, position.clone()), project(&world.conversation, position));
    assert_eq!(next(&folded), next(&world.conversation));
    // The whole state, including parts that no projection shows.
    assert!(format!("{folded:?}") == format!("{:?}", world.conversation));
}
