mod cancelled;

use crate::catalogue::fix_catalogue;
use crate::event::{CallId, Event, ModelFailure, ToolProgress};
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::next::next;
use crate::progress::Stall;
use crate::run::Run;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{Limits, Stage, ToolPolicy};
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::steps(|run: &mut Run| run.limits.steps = 1, OutcomeCode::StepLimit)]
#[case::tool_calls(|run: &mut Run| run.limits.tool_calls = 2, OutcomeCode::ToolCallLimit)]
#[case::tokens(|run: &mut Run| run.limits.tokens = 100, OutcomeCode::TokenLimit)]
#[case::duration(|run: &mut Run| run.limits.duration_seconds = 0, OutcomeCode::DurationLimit)]
fn each_limit_has_its_code(#[case] lower: fn(&mut Run), #[case] expected: OutcomeCode) {
    let mut limited = run();
    lower(&mut limited);
    let world = ended(limited, refund(), ALL_WELL);
    assert_eq!(code(&world), expected);
    assert!(world.effects.is_empty());
}

#[rstest]
#[case::steps(Limits { steps: Some(1), ..Limits::default() }, OutcomeCode::StepLimit)]
#[case::tool_calls(Limits { tool_calls: Some(2), ..Limits::default() }, OutcomeCode::ToolCallLimit)]
#[case::tokens(Limits { tokens: Some(100), ..Limits::default() }, OutcomeCode::TokenLimit)]
#[case::duration(Limits { duration: Some("0s".parse().unwrap()), ..Limits::default() }, OutcomeCode::DurationLimit)]
fn a_limit_that_is_lowered_in_the_run_applies_from_then_on(#[case] limits: Limits, #[case] expected: OutcomeCode) {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play(4);
    world.record(Event::LimitsLowered { limits });
    let lowered = world.conversation.run().limits;
    world.play_out();
    assert_eq!(code(&world), expected);
    assert!(world.effects.is_empty());
    // The next attempt reads the same from the log, although its run document has the earlier limits.
    let resumed = world.resumed_with(run());
    assert_eq!((resumed.conversation.run().limits, code(&resumed)), (lowered, expected));
}

#[test]
fn a_tool_that_is_blocked_in_the_run_is_denied_from_then_on() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play(4);
    for _ in 0..2 {
        world.record(Event::ToolsBlocked { tools: vec!["process_*".into()] });
    }
    world.play_out();
    assert!(world.effects.iter().all(|(tool, _)| tool != "process_refund"), "{:?}", world.effects);
    let blocked = |world: &World| world.conversation.run().skill.policy.clone().unwrap().tools.unwrap().blocked;
    assert_eq!(blocked(&world), ["delete_customer", "process_*"]);
    assert_eq!(blocked(&world.resumed_with(run())), blocked(&world), "the next attempt reads it from the log");
}

#[test]
fn a_tool_policy_of_the_tenant_that_comes_in_the_run_applies_from_then_on() {
    let restrict = |world: &mut World, allowed: &str| {
        let policy = ToolPolicy { allowed: Some(vec![allowed.into()]), blocked: Vec::new() };
        world.record(Event::ToolsRestricted { policy });
    };
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play(4);
    for allowed in ["verify_*", "verify_*", "process_*"] {
        restrict(&mut world, allowed);
    }
    world.play_out();
    assert!(world.effects.iter().all(|(tool, _)| tool != "process_refund"), "{:?}", world.effects);
    let policies = |world: &World| world.conversation.run().tenant_tools.clone();
    assert_eq!(policies(&world).len(), 2, "a later policy does not lift an earlier one");
    assert_eq!(policies(&world.resumed_with(run())), policies(&world), "the next attempt reads it from the log");
}

proptest! {
    #[test]
    fn no_event_raises_a_limit(lowered in prop::collection::vec((1u32..200, 1u32..200, 1u64..400_000, 0u64..4000), 1..9)) {
        let mut world = World::new(run(), vec![], ALL_WELL);
        let mut before = world.conversation.run().limits;
        for (steps, tool_calls, tokens, seconds) in lowered {
            let duration = Some(format!("{seconds}s").parse().unwrap());
            let (steps, tool_calls, tokens) = (Some(steps), Some(tool_calls), Some(tokens));
            world.record(Event::LimitsLowered { limits: Limits { steps, tool_calls, tokens, duration } });
            let after = world.conversation.run().limits;
            prop_assert!(after.steps <= before.steps && after.tool_calls <= before.tool_calls);
            prop_assert!(after.tokens <= before.tokens && after.duration_seconds <= before.duration_seconds);
            before = after;
        }
    }
}

#[test]
fn a_call_that_keeps_failing_ends_the_job_as_stuck() {
    let again = || asks(&[("process_refund", order())]);
    let world = ended(run(), vec![again(), again(), again(), again()], |_, _| Reply::Failed("no such order"));
    assert_eq!(code(&world), OutcomeCode::Stuck);
    assert_eq!(world.effects.len(), 3);
    let has_warning = world
        .conversation
        .turns()
        .iter()
        .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.contains("failed 2 times")));
    assert!(has_warning);
}

#[test]
fn the_third_unreadable_answer_in_a_row_ends_the_conversation() {
    let mut world = World::new(run(), vec![], ALL_WELL);
    world.play(4);
    for _ in 0..3 {
        assert!(matches!(next(&world.conversation), Step::CallModel(_)));
        world.record(Event::ModelRequested { stage: Stage::Plan, reserve: 5000 });
        world.record(Event::ModelFailed { kind: ModelFailure::Unreadable, message: "not JSON".into() });
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ModelUnavailable);
    assert_eq!(world.conversation.budget().tokens(), 15_000, "the reserves count as spent");
}

#[rstest]
#[case::not_served(ModelFailure::Unavailable, 0)]
#[case::refused_as_too_long(ModelFailure::TooLong, 0)]
#[case::unreadable(ModelFailure::Unreadable, 5000)]
fn the_reserve_of_a_request_that_was_not_served_is_not_spent(#[case] kind: ModelFailure, #[case] spent: u64) {
    let mut world = World::new(run(), vec![], ALL_WELL);
    world.play(4);
    world.record(Event::ModelRequested { stage: Stage::Plan, reserve: 5000 });
    assert_eq!(world.conversation.budget().tokens(), 5000, "reserved while the request is open");
    world.record(Event::ModelFailed { kind, message: "The Model `default` cannot be reached.".into() });
    let budget = world.conversation.budget();
    assert_eq!((budget.tokens(), budget.input_tokens()), (spent, spent));
}

#[test]
fn a_request_beyond_the_limit_of_tokens_names_what_is_spent_and_what_it_needs() {
    let mut limited = run();
    limited.limits.tokens = 100;
    let world = ended(limited, refund(), ALL_WELL);
    let message = &world.conversation.outcome().unwrap().message;
    assert!(
        message.starts_with("A limit is reached: 0 tokens are spent and the next request needs about "),
        "{message}"
    );
}

#[test]
fn epochs_without_progress_end_as_a_crash_loop() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut world = whole.resumed_from(5);
    for epoch in 3..5 {
        assert_eq!(world.conversation.shared.progress.stall(), None);
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
    }
    assert_eq!(world.conversation.shared.progress.stall(), None);
    world.record(Event::EpochStarted { epoch: 5, attempt: 9, after_disruption: false });
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}

#[test]
fn progress_notifications_of_a_lost_call_are_no_progress_of_the_job() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut world = whole.resumed_from(5);
    for epoch in 3..6 {
        assert_eq!(world.conversation.shared.progress.stall(), None);
        world.record(Event::ToolProgressed { call: CallId::new(7, 0), progress: ToolProgress::default() });
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}

#[test]
fn epochs_that_only_park_end_as_a_crash_loop_much_later() {
    let whole = ended(run(), refund(), ALL_WELL);
    // `resumed_from` starts an epoch, which makes no progress either.
    let mut world = whole.resumed_from(5);
    for epoch in 3..23 {
        assert_eq!(world.conversation.shared.progress.stall(), None, "epoch {epoch}");
        world.record(Event::Parked { reason: ParkReason::Drain });
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
    }
    assert_eq!(world.conversation.shared.progress.stall(), Some(Stall::Drains));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.contains("20 pods") && message.contains("drain"), "{message}");
}

#[test]
fn a_drain_is_not_a_crash_and_progress_resets_both_counts() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let start = |world: &mut World, epochs: std::ops::RangeInclusive<u64>| {
        for epoch in epochs {
            world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
        }
    };
    start(&mut world, 2..=3);
    world.record(Event::Parked { reason: ParkReason::Drain });
    start(&mut world, 4..=6);
    assert_eq!(world.conversation.shared.progress.stall(), None, "three crashes since the drain, and no fourth start");
    world.record(fix_catalogue(&run(), listed()));
    start(&mut world, 7..=9);
    assert_eq!(world.conversation.shared.progress.stall(), None);
    start(&mut world, 10..=10);
    assert_eq!(world.conversation.shared.progress.stall(), Some(Stall::Crashes));
}

#[test]
fn disrupted_epochs_end_as_a_crash_loop_as_late_as_drained_ones() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut world = whole.resumed_from(5);
    for epoch in 3..23 {
        assert_eq!(world.conversation.shared.progress.stall(), None, "epoch {epoch}");
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: true });
    }
    assert_eq!(world.conversation.shared.progress.stall(), Some(Stall::Drains));
}

#[test]
fn a_disruption_interrupts_a_series_of_crashes() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let mut start = |epoch, after_disruption| {
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption });
        world.conversation.shared.progress.stall()
    };
    for (epoch, after_disruption) in [(2, false), (3, false), (4, true), (5, false), (6, false)] {
        assert_eq!(start(epoch, after_disruption), None, "epoch {epoch}");
    }
    assert_eq!(start(7, false), Some(Stall::Crashes));
}

#[test]
fn a_lost_effect_is_the_outcome_even_after_repeated_crashes() {
    let whole = ended(run(), refund(), ALL_WELL);
    let cut = whole.names().iter().position(|name| *name == "tool.started").unwrap() + 1;
    let mut world = whole.resumed_from(cut);
    for epoch in 3..7 {
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
    }
    assert_eq!(world.conversation.shared.progress.stall(), Some(Stall::Crashes));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
}
