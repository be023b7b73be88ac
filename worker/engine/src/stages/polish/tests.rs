use crate::event::{Event, ModelFailure, PolishOutcome};
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::next::next;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Stage;
use rstest::rstest;

#[rstest]
#[case::a_number_is_lost("Refunded 50 EUR for A-17.", false)]
#[case::only_words_change("We have refunded 49.9 EUR for A-17 - sorry!", true)]
fn an_answer_whose_content_the_polisher_changed_stays_unpolished(#[case] polished: &'static str, #[case] taken: bool) {
    let answers = vec![looked_up(), refunds(49.9), answer("Refunded 49.9 EUR for A-17.")];
    let world = staged_world(cs_tier_1(), answers, &[(Stage::Polish, &[polished])]);
    let result = status(&world).result.unwrap();
    let expected = if taken { polished } else { "Refunded 49.9 EUR for A-17." };
    assert_eq!((code(&world), result.text.as_str(), result.polished), (OutcomeCode::Succeeded, expected, taken));
}

#[test]
fn an_answer_that_passed_is_kept_if_the_polisher_gives_no_answer() {
    let mut world = World::new(run_of(cs_tier_1()), vec![looked_up(), refunds(5.0), answer("Done.")], ALL_WELL);
    world.stages.insert(Stage::Intent, vec![REFUND]);
    let mut events = 0;
    let polishes =
        |world: &World| matches!(next(&world.conversation), Step::CallModel(request) if request.stage == Stage::Polish);
    while !polishes(&world) {
        events += 1;
        assert!(world.log.len() >= events - 1, "it ended before: {:?}", world.names());
        world.play(events);
    }
    world.record(Event::ModelRequested { reserve: 10, stage: Stage::Polish });
    world.record(Event::ModelFailed { kind: ModelFailure::Unavailable, message: "503".into() });
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert!(matches!(world.conversation.polishing.outcome(), Some(PolishOutcome::Kept(why)) if why.contains("503")));
}
