use crate::event::Event;
use crate::fixture::attended::*;
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::next::next;
use crate::people::HumanRequest;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;

/// Returns a conversation in which the answer to a refund was lost, and these people were asked.
fn loses_the_refund(people: People) -> World {
    let answer = asks(&[("process_refund", order()), ("note", order()), ("verify_identity", order())]);
    let mut world = World::new(attended(), vec![answer], |tool, _| {
        if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") }
    });
    world.people = people;
    world.play_out();
    world
}

#[test]
fn a_lost_call_that_happened_is_completed_and_later_calls_run() {
    let world = loses_the_refund(|open| {
        let [HumanRequest::Question(asked)] = open else { panic!("{open:?}") };
        assert_eq!(asked.question.choices, ["happened", "did not happen", "stop"]);
        assert!(asked.question.text.contains("process_refund was sent with {\"order_id\":\"A-17\"}"), "{asked:?}");
        reply(open, |_| "happened".to_owned())
    });
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let results = results(&world.conversation);
    assert!(results[0].contains("It happened, as jane confirmed"), "{results:?}");
    assert_eq!((&results[1..], world.effects.len()), (["ok", "ok"].as_slice(), 2));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_lost_call_that_did_not_happen_has_failed_and_is_not_sent_again() {
    let world = loses_the_refund(|open| reply(open, |choices| choices[1].clone()));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let results = results(&world.conversation);
    assert!(results[0].starts_with("Failed:") && results[0].contains("It did not happen"), "{results:?}");
    assert!(results[1].starts_with("Skipped:"), "{results:?}");
    assert_eq!((results[2], world.effects.len()), ("ok", 1));
}

#[test]
fn a_job_that_a_person_stops_at_a_lost_call_ends_as_indeterminate() {
    let world = loses_the_refund(|open| reply(open, |choices| choices[2].clone()));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::ToolIndeterminate, 1));
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.ends_with("it was not repeated. The Job was ended here by jane."), "{message}");
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn people_are_asked_about_a_lost_call_before_a_limit_ends_the_job() {
    let mut world = loses_the_refund(|_| None);
    world.record(Event::LimitHit { code: OutcomeCode::DurationLimit, message: "spent".into() });
    assert!(matches!(next(&world.conversation), Step::AskPeople(_)), "{:?}", next(&world.conversation));
    world.record(replies(1, "perhaps"));
    let [left] = world.conversation.questions().open() else { panic!("{:?}", open(&world)) };
    assert!(left.refused.as_ref().unwrap().contains("none of: happened, did not happen, stop"));
    world.record(replies(1, "happened"));
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::DurationLimit, 1));
}
