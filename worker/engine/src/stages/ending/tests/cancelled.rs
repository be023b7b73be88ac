//! Conversations that a person cancels, or whose Skill a person deletes.

use crate::event::{Directive, Event};
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::next::next;
use crate::projection::project;
use crate::run::Run;
use crate::step::Step;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use rstest::rstest;

const CANCEL: Event = Event::DirectiveReceived { directive: Directive::Cancel };

/// The part of the outcome's message about a call whose result is not known.
const UNKNOWN: &str = "was sent and its answer is not known: find out whether it happened";

fn message(world: &World) -> &str {
    &world.conversation.outcome().unwrap().message
}

/// Returns whether the log ends while a call with effect is under way.
fn is_within_an_effect(names: &[&str]) -> bool {
    let count = |name: &str| names.iter().filter(|event| **event == name).count();
    // Only calls with effect have `tool.started`.
    let outcomes = names.iter().skip_while(|name| **name != "tool.started").filter(|name| **name == "tool.completed");
    count("tool.started") > outcomes.count()
}

#[test]
fn a_cancellation_at_any_event_starts_no_call_and_names_those_under_way() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut named = 0;
    for cut in 1..whole.log.len() {
        let mut cancelled = whole.resumed_from(cut);
        let within = is_within_an_effect(&whole.names()[..cut]);
        cancelled.record(CANCEL);
        assert!(matches!(next(&cancelled.conversation), Step::Record(_)), "after {cut} events");
        cancelled.play_out();
        assert_eq!(code(&cancelled), OutcomeCode::Cancelled, "after {cut} events");
        assert_eq!((cancelled.asked, cancelled.effects.len()), (0, 0), "after {cut} events");
        assert_eq!(message(&cancelled).contains(UNKNOWN), within, "after {cut} events: {}", message(&cancelled));
        assert_eq!(cancelled.names().last(), Some(&"finished"));
        let status = project(&cancelled.conversation, log_position());
        assert_eq!((status.phase, status.waiting_for), (Phase::Cancelled, None));
        named += usize::from(within);
        // A worker that resumes after the cancellation, at any event, comes to the same end.
        for later in cut + 2..=cancelled.log.len() {
            let mut resumed = cancelled.resumed_from(later);
            resumed.play_out();
            assert_eq!((code(&resumed), message(&resumed)), (OutcomeCode::Cancelled, message(&cancelled)));
            assert_eq!((resumed.asked, resumed.effects.len()), (0, 0));
        }
    }
    assert!(named > 0, "some cut lies within an effect");
}

fn log_position() -> bloomery_crds::v1alpha1::LogPosition {
    crate::line::Chain::new("/test").position("jobs/k")
}

fn attended() -> Run {
    Run { people: true, ..run() }
}

#[rstest]
#[case::without_people(run())]
#[case::with_people(attended())]
fn a_cancelled_job_names_its_lost_call_and_asks_no_question(#[case] run: Run) {
    let mut world = World::new(run, vec![asks(&[("process_refund", order()), ("note", order())])], |_, _| Reply::Lost);
    while !world.names().contains(&"tool.started") {
        let events = world.log.len() + 1;
        world.play(events);
    }
    // The directive has stopped the worker during the call.
    world.record(CANCEL);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Cancelled);
    let call = &world.conversation.calls()[0];
    assert!(
        message(&world).contains(&format!("The call {} of process_refund {UNKNOWN}", call.id)),
        "{}",
        message(&world)
    );
    assert_eq!(world.names().iter().filter(|name| **name == "tool.skipped").count(), 1);
    assert!(!world.names().contains(&"user.asked"));
}

#[test]
fn an_open_question_about_a_lost_call_is_not_waited_for() {
    let mut world = World::new(attended(), vec![asks(&[("process_refund", order())])], |_, _| Reply::Lost);
    world.play_out();
    assert_eq!(world.conversation.questions().open().len(), 1);
    world.record(CANCEL);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Cancelled);
    assert!(message(&world).contains(UNKNOWN), "{}", message(&world));
}

#[test]
fn a_lost_idempotent_call_is_named_and_not_repeated() {
    let mut world = World::new(run(), vec![asks(&[("note", order())]), good_answer()], |_, _| Reply::Lost);
    while !world.names().contains(&"tool.indeterminate") {
        let events = world.log.len() + 1;
        world.play(events);
    }
    let sent = world.effects.len();
    world.record(CANCEL);
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Cancelled, sent));
    assert!(message(&world).contains(UNKNOWN), "{}", message(&world));
}

#[test]
fn the_deletion_of_the_skill_ends_a_job_like_a_cancellation_with_its_own_reason() {
    let whole = ended(run(), refund(), ALL_WELL);
    for cut in 1..whole.log.len() {
        let mut deleted = whole.resumed_from(cut);
        deleted.record(Event::DirectiveReceived { directive: Directive::SkillDeleted });
        // The first directive counts.
        deleted.record(CANCEL);
        deleted.play_out();
        assert_eq!((code(&deleted), deleted.effects.len()), (OutcomeCode::SkillDeleted, 0), "after {cut} events");
        let within = is_within_an_effect(&whole.names()[..cut]);
        let message = message(&deleted);
        assert_eq!(message.contains(UNKNOWN), within, "after {cut} events: {message}");
        assert!(message.contains("the Skill was deleted") && message.contains("Create the Skill again"), "{message}");
    }
}

#[test]
fn a_directive_after_the_end_changes_nothing() {
    let mut world = ended(run(), refund(), ALL_WELL);
    world.record(CANCEL);
    assert!(matches!(next(&world.conversation), Step::Done(_)));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn repeated_parking_counts_as_no_progress() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    for _ in 0..=crate::progress::MAX_EPOCHS_WITHOUT_PROGRESS {
        world.record(Event::DirectiveReceived { directive: Directive::Park });
        world.record(Event::Parked { reason: bloomery_crds::report::ParkReason::Suspension });
        world = world.resumed_with(run());
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}
