//! Conversations that are too long for their model: results are offloaded, as long as there are any.

use crate::event::{Event, ModelFailure};
use crate::fixture;
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::next::next;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Stage;
use serde_json::json;
use std::sync::LazyLock;

static LARGE: LazyLock<String> = LazyLock::new(|| "a line of a large result\n".repeat(400));

fn large(_: &str, _: u32) -> Reply {
    Reply::Completed(LARGE.as_str())
}

/// Returns a conversation with two answers that each request a large result, and a final answer.
fn world() -> World {
    let order = |n: u32| asks(&[("verify_identity", json!({"order_id": format!("A-{n}")}))]);
    World::new(run(), vec![order(1), order(2), good_answer()], large)
}

/// Records that the model refuses the next request, because the conversation is too long.
fn refuse(world: &mut World) {
    let Step::CallModel(request) = next(&world.conversation) else { panic!("{:?}", next(&world.conversation)) };
    let (reserve, stage) = (request.reserve, request.stage);
    world.record(Event::ModelRequested { reserve, stage });
    world.record(Event::ModelFailed { kind: ModelFailure::TooLong, message: "The Model `default` is full.".into() });
}

/// Returns for each result in the history whether it is whole, and not an excerpt.
fn are_whole(world: &World) -> Vec<bool> {
    let results = world.conversation.turns().iter().filter_map(|turn| match turn {
        Turn::ToolResult { text, .. } => Some(text.len() > LARGE.len() / 2),
        Turn::User(_) | Turn::Assistant(_) => None,
    });
    results.collect()
}

#[test]
fn a_conversation_that_is_too_long_offloads_results_and_then_ends_with_a_remedy() {
    let mut world = world();
    world.play_until(|conversation| conversation.budget().answers() == 2 && conversation.calls().is_empty());
    assert_eq!(are_whole(&world), [true, true]);
    let before = world.conversation.shared.history.offloaded();
    for left in [[false, true], [false, false]] {
        refuse(&mut world);
        let Step::Offload(results) = next(&world.conversation) else { panic!("{:?}", next(&world.conversation)) };
        assert_eq!(results.len(), 1);
        world.play(world.log.len() + 1);
        assert_eq!(are_whole(&world), left);
    }
    assert_eq!(
        world.conversation.shared.history.offloaded(),
        before + 2,
        "each offload makes a new version of the turns"
    );
    refuse(&mut world);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ModelUnavailable);
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.starts_with("The Model `default` is full. No result of a tool is left"), "{message}");
}

#[test]
fn a_conversation_continues_once_it_is_shorter() {
    let mut world = world();
    world.play_until(|conversation| conversation.budget().answers() == 2 && conversation.calls().is_empty());
    refuse(&mut world);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(are_whole(&world), [false, true]);
}

#[test]
fn a_request_outside_the_main_loop_offloads_nothing() {
    let mut gated = run();
    gated.skill.engine = None;
    let mut world = World::new(gated, vec![good_answer()], large);
    world.play_until(|conversation| conversation.finalization.pending().is_some());
    let Step::CallModel(request) = next(&world.conversation) else { panic!("no question") };
    assert_eq!(request.stage, Stage::Finalization);
    refuse(&mut world);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ModelUnavailable);
}

#[test]
fn older_results_are_offloaded_when_the_window_is_nearly_full() {
    let long: Tools = |_, _| Reply::Completed(Box::leak("x".repeat(12_000).into_boxed_str()));
    let mut run = run_of(fixture::skill());
    run.context_window = 8_192;
    let lookup = |n: u32| asks(&[("verify_identity", json!({"order_id": format!("A-{n}")}))]);
    let world = ended(run, vec![lookup(1), lookup(2), lookup(3)], long);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let offloaded = world.names().iter().filter(|name| **name == "result.offloaded").count();
    assert_eq!(offloaded, 2, "the latest result stays whole");
    let lengths: Vec<usize> = world
        .conversation
        .turns()
        .iter()
        .filter_map(|turn| match turn {
            Turn::ToolResult { text, .. } => Some(text.len()),
            Turn::User(_) | Turn::Assistant(_) => None,
        })
        .collect();
    assert!(lengths[0] < 2_048 && lengths[1] < 2_048 && lengths[2] == 12_000, "{lengths:?}");
    assert_history_is_well_formed(&world.conversation);
}
