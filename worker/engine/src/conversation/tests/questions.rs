//! Questions to people, and what they say by themselves.

use super::super::fixture::{People, Reply, World, asks, good_answer, run, says};
use super::stages::{GOAL_UNMET, answer, looked_up, refunds, staged};
use super::{ALL_WELL, assert_history_is_well_formed, code, order, seed};
use crate::conversation::{Conversation, StrayReply};
use crate::event::{About, Answer, Event, QuestionId};
use crate::line::Chain;
use crate::people::{Ask, MAX_WORDS, Said};
use crate::projection::project;
use crate::run::Run;
use crate::step::{Step, next};
use crate::turn::Turn;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{SkillSpec, Stage};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

/// A Job whose people can be asked.
pub(super) fn attended() -> Run {
    Run { people: true, ..run() }
}

pub(super) fn ask(text: &str) -> (&'static str, Value) {
    ("ask_user", json!({"text": text}))
}

pub(super) fn world(run: Run, answers: Vec<Answer>, people: People) -> World {
    let mut world = World::new(run, answers, ALL_WELL);
    world.people = people;
    world.play_out();
    world
}

/// The stages of the seed's Skill, with people.
fn attended_stages(skill: SkillSpec, answers: Vec<Answer>, stages: &[(Stage, &[&'static str])]) -> World {
    let world = staged(skill, answers, stages);
    let run = Run { people: true, ..world.conversation.run().clone() };
    let mut attended = world.resumed_with(run);
    // The first epoch was another's, and told nobody anything.
    attended.people = first_choice;
    attended
}

fn first_choice(open: &[Ask<'_>]) -> Option<Said> {
    reply(open, |choices| choices.first().cloned().unwrap_or_else(|| "B-4".to_owned()))
}

fn reply(open: &[Ask<'_>], answer: impl Fn(&[String]) -> String) -> Option<Said> {
    open.iter().find_map(|ask| match ask {
        Ask::Question(open) => {
            let text = answer(&open.question.choices);
            Some(Said::Replies { question: open.question.id.clone(), text, by: "jane".into(), nth: None })
        }
        Ask::Call(_) => None,
    })
}

pub(super) fn replies(n: u32, text: &str) -> Event {
    Said::Replies { question: QuestionId::new(n), text: text.into(), by: "jane".into(), nth: None }.into()
}

pub(super) fn message(text: &str) -> Event {
    Said::Message { text: text.into(), by: "jane".into(), nth: None }.into()
}

fn results(conversation: &Conversation) -> Vec<&str> {
    let turns = conversation.turns().iter();
    turns.filter_map(|turn| if let Turn::ToolResult { text, .. } = turn { Some(text.as_str()) } else { None }).collect()
}

fn said_by_users(conversation: &Conversation) -> Vec<&str> {
    let turns = conversation.turns().iter();
    turns.filter_map(|turn| if let Turn::User(text) = turn { Some(text.as_str()) } else { None }).collect()
}

pub(super) fn open(world: &World) -> Vec<(String, About)> {
    let open = world.conversation.questions().open().iter();
    open.map(|open| (open.question.id.to_string(), open.about.clone())).collect()
}

#[test]
fn an_answer_is_the_result_of_the_call_that_asked() {
    let choice = ("ask_user", json!({"text": "Which order?", "choices": ["A-17", "B-4"]}));
    let world = world(attended(), vec![asks(&[choice])], first_choice);
    assert_eq!((code(&world), results(&world.conversation)), (OutcomeCode::Succeeded, vec!["A-17"]));
    assert_eq!(world.conversation.questions().open(), []);
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn several_questions_are_put_at_once_and_answered_in_any_order() {
    let calls = [("verify_identity", order()), ask("Which?"), ask("When?"), ("note", order()), ask("Why?")];
    let mut world = World::new(attended(), vec![asks(&calls)], ALL_WELL);
    world.play_out();
    let ids: Vec<String> = open(&world).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["q-1", "q-2"], "the third comes after an effect");
    assert_eq!(world.effects, [], "and the effect after the answers");
    world.record(replies(2, "tomorrow"));
    let Step::AskPeople(left) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    assert_eq!(left.len(), 1);
    world.record(replies(1, "A-17"));
    world.people = |open| reply(open, |_| "so that".to_owned());
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(results(&world.conversation), ["ok", "A-17", "tomorrow", "ok", "so that"]);
    assert_history_is_well_formed(&world.conversation);
}

#[rstest]
#[case::no_text(json!({"choices": ["a"]}))]
#[case::empty(json!({"text": ""}))]
#[case::too_long(json!({"text": "x".repeat(1001)}))]
#[case::too_many_choices(json!({"text": "?", "choices": vec!["a"; 9]}))]
fn what_is_no_question_is_put_to_nobody(#[case] arguments: Value) {
    let world = world(attended(), vec![asks(&[("ask_user", arguments)])], |_| panic!("nobody is to be asked"));
    assert!(results(&world.conversation)[0].starts_with("Denied:"), "{:?}", results(&world.conversation));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn where_there_is_nobody_the_tool_is_not_there_and_its_calls_are_denied() {
    let alone = world(run(), vec![asks(&[ask("Which?")])], |_| panic!("nobody is to be asked"));
    assert!(alone.conversation.visible().iter().all(|tool| tool.name != "ask_user"));
    assert!(results(&alone.conversation)[0].contains("there is no tool \"ask_user\""));
    // Begun with people, and gone on with without: the tool stays listed, and says so.
    let mut begun = World::new(attended(), vec![asks(&[ask("Which?")])], ALL_WELL);
    begun.play_until(|conversation| !conversation.calls().is_empty());
    let mut left = begun.resumed_with(run());
    left.play_out();
    assert!(results(&left.conversation)[0].contains("nobody can be asked any more"));
    assert_eq!(code(&left), OutcomeCode::Succeeded);
}

#[test]
fn a_reply_that_fits_no_open_question_changes_nothing_and_is_kept_to_be_shown() {
    let mut world = World::new(attended(), vec![asks(&[ask("Which?")])], ALL_WELL);
    world.record(replies(1, "before it was asked"));
    world.play_out();
    assert_eq!(open(&world).len(), 1);
    world.record(replies(7, "to nobody"));
    world.record(replies(1, "A-17"));
    world.record(replies(1, "or B-4"));
    world.play_out();
    assert_eq!((code(&world), results(&world.conversation)), (OutcomeCode::Succeeded, vec!["A-17"]));
    let stray = |n, text: &str, answered| StrayReply {
        question: QuestionId::new(n),
        text: text.into(),
        by: "jane".into(),
        nth: None,
        answered,
    };
    let kept = [stray(1, "before it was asked", false), stray(7, "to nobody", false), stray(1, "or B-4", true)];
    assert_eq!(world.conversation.questions().stray(), kept);
    for n in 10..30 {
        world.record(replies(n, "?"));
    }
    let questions = world.conversation.questions();
    assert_eq!((questions.stray().len(), questions.strays()), (8, 23), "all are counted, the latest kept");
}

#[test]
fn an_answer_is_new_evidence() {
    let bad = || says("no block");
    let again = world(attended(), vec![bad(), bad(), bad(), asks(&[ask("Which?")]), good_answer()], first_choice);
    assert_eq!(code(&again), OutcomeCode::Succeeded);
    // The same question once more brings another answer; a call that was made before brings nothing.
    let without = world(attended(), vec![bad(), bad(), bad(), bad()], first_choice);
    assert_eq!(code(&without), OutcomeCode::GateFailed);
}

fn seed_skill() -> SkillSpec {
    let mut skill = seed::skill();
    let amount = json!({"name": "amount", "type": "number", "required": true});
    let urgent = json!({"name": "urgent", "type": "boolean", "required": true});
    let entities = &mut skill.intents.as_mut().unwrap().supported[0].entities;
    entities.extend([amount, urgent].map(|entity| serde_json::from_value(entity).unwrap()));
    skill
}

#[test]
fn what_the_goal_does_not_name_is_asked_for_all_at_once_and_read_by_its_type() {
    let nameless = r#"{"intent": "intent_refund", "entities": {}}"#;
    let mut world = attended_stages(
        seed_skill(),
        vec![looked_up(), refunds(5.0), answer("Done.")],
        &[(Stage::Intent, &[nameless]), (Stage::Polish, &["Done."])],
    );
    world.people = |_| None;
    world.play_out();
    let about: Vec<About> = open(&world).into_iter().map(|(_, about)| about).collect();
    assert_eq!(about, ["order_id", "amount", "urgent"].map(|name| About::Entity(name.into())));
    assert_eq!(world.conversation.questions().open()[2].question.choices, ["true", "false"]);
    assert_eq!(world.asked, 0, "the main loop waits");
    for (n, text) in [(2, "much"), (2, " 49.9 "), (1, ""), (1, "A-17"), (3, "yes"), (3, "true")] {
        world.record(replies(n, text));
    }
    assert_eq!(world.conversation.questions().stray(), []);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let intent = world.conversation.intention().intent().unwrap();
    assert_eq!(Value::Object(intent.entities.clone()), json!({"amount": 49.9, "order_id": "A-17", "urgent": true}));
    let said = said_by_users(&world.conversation);
    assert_eq!(said[1..4], ["amount: 49.9", "order_id: A-17", "urgent: true"]);
}

#[test]
fn an_answer_that_is_none_leaves_its_question_open_and_says_why() {
    let nameless = r#"{"intent": "intent_refund", "entities": {"order_id": "A-17", "urgent": true}}"#;
    let mut world = attended_stages(seed_skill(), vec![], &[(Stage::Intent, &[nameless])]);
    world.people = |_| None;
    world.play_out();
    world.record(replies(1, "a lot"));
    let [left] = world.conversation.questions().open() else { panic!("{:?}", open(&world)) };
    assert_eq!(left.refused.as_deref(), Some("\"a lot\" is not of the type number"));
}

const UNCLEAR: &str = r#"{"passed": false, "reasons": [{"code": "GOAL_NOT_MET", "detail": "no address"}], "suggested_action": "CLARIFY_USER"}"#;
const PASSES: &str = r#"{"passed": true, "reasons": []}"#;

#[test]
fn what_the_gate_has_to_know_is_asked_and_the_answer_opens_the_next_attempt() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let stages: [(Stage, &[&'static str]); 2] = [(Stage::Finalization, &[UNCLEAR, PASSES]), (Stage::Polish, &["Two."])];
    let mut world = attended_stages(seed::skill(), answers.clone(), &stages);
    world.people = |open| {
        let [Ask::Question(asked)] = open else { panic!("{open:?}") };
        assert_eq!(asked.question.text, "The answer cannot go out before you have said more: no address");
        reply(open, |_| "Mill Lane 3".to_owned())
    };
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let expected = "Your answer did not pass: no address. The user was asked about it, and says: Mill Lane 3";
    assert_eq!(said_by_users(&world.conversation).last(), Some(&expected));
    assert_eq!(world.conversation.finalization().attempts().len(), 2);

    let mut alone = staged(seed::skill(), answers, &stages);
    alone.play_out();
    assert_eq!(code(&alone), OutcomeCode::UserNeeded);
}

#[test]
fn nobody_is_asked_for_an_answer_that_has_no_attempt_left() {
    let mut skill = seed::skill();
    skill.engine.get_or_insert_default().finalization_gate.get_or_insert_default().max_retries = Some(0);
    let answers = vec![looked_up(), refunds(5.0), answer("One.")];
    let mut world = attended_stages(skill, answers, &[(Stage::Finalization, &[UNCLEAR])]);
    world.people = |_| panic!("nobody is to be asked");
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::UserNeeded);
}

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
fn a_lost_call_that_happened_is_completed_and_the_rest_goes_on() {
    let world = loses_the_refund(|open| {
        let [Ask::Question(asked)] = open else { panic!("{open:?}") };
        assert_eq!(asked.question.choices, ["happened", "did not happen", "stop"]);
        assert!(asked.question.text.contains("process_refund was sent with {\"order_id\":\"A-17\"}"), "{asked:?}");
        reply(open, |_| "happened".to_owned())
    });
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let results = results(&world.conversation);
    assert!(results[0].contains("jane confirmed that it happened"), "{results:?}");
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
fn a_lost_call_at_which_a_person_stops_ends_as_indeterminate() {
    let world = loses_the_refund(|open| reply(open, |choices| choices[2].clone()));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::ToolIndeterminate, 1));
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.ends_with("it was not repeated. The Job was ended here by jane."), "{message}");
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_lost_call_is_asked_about_before_anything_else_ends_the_job() {
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

#[test]
fn a_message_is_taken_after_all_results_of_the_last_answer() {
    let mut world =
        World::new(attended(), vec![asks(&[("note", order()), ("note", json!({"order_id": "B"}))])], ALL_WELL);
    world.record(message("before it is open"));
    world.play_until(|conversation| conversation.calls().iter().any(crate::conversation::Call::is_settled));
    world.record(message("hurry"));
    assert!(!said_by_users(&world.conversation).contains(&"hurry"), "a result is missing");
    world.play_out();
    assert_eq!(
        said_by_users(&world.conversation),
        ["Refund order A-17, it arrived broken", "before it is open", "hurry"]
    );
    let last = world.conversation.turns().len() - 2;
    assert_eq!(world.conversation.turns()[last], Turn::User("hurry".into()), "then the model answers");
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn an_answer_that_did_not_know_of_a_message_is_given_anew() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let mut world = attended_stages(seed::skill(), answers, &[(Stage::Polish, &["Two."])]);
    world.play_until(|conversation| conversation.finalization().pending().is_some());
    world.record(message("to Mill Lane 3, please"));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let status = project(&world.conversation, Chain::new("/test").position("p"));
    assert_eq!((status.result.unwrap().text.as_str(), status.gates.finalization.attempts.len()), ("Two.", 1));
    // One that has passed is on its way.
    world.record(message("too late"));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn a_message_is_new_evidence() {
    let failed = [says("no block"), says("no block"), says("no block"), good_answer()];
    let mut world = World::new(attended(), failed.to_vec(), ALL_WELL);
    world.play_until(|conversation| conversation.finalization().awaits_evidence());
    world.record(message("the order is A-17"));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn what_people_say_is_bounded() {
    let Event::UserMessage { text, by, nth: _ } =
        Event::from(Said::Message { text: "x".repeat(1 << 20), by: "j".repeat(1 << 20), nth: None })
    else {
        panic!("another event")
    };
    assert!(text.len() <= MAX_WORDS && by.len() <= 256);
}

#[test]
fn a_worker_lost_at_any_event_of_questions_asks_again_what_is_open_and_nothing_else() {
    let answers = vec![asks(&[ask("Which?"), ask("When?"), ("note", order())]), good_answer()];
    let whole = world(attended(), answers, first_choice);
    assert_eq!(code(&whole), OutcomeCode::Succeeded);
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        let before = resumed.conversation.turns().to_vec();
        resumed.play_out();
        assert_eq!(code(&resumed), OutcomeCode::Succeeded, "after {cut} events");
        assert!(resumed.conversation.turns().starts_with(&before));
        assert_eq!(resumed.conversation.turns(), whole.conversation.turns(), "after {cut} events");
        for name in ["user.asked", "user.replied"] {
            let times = resumed.names().iter().filter(|event| **event == name).count();
            assert_eq!(times, 2, "{name} after {cut} events");
        }
    }
}

#[derive(Debug, Clone)]
enum Word {
    Reply(u32, &'static str),
    Message,
    Goes(usize),
}

fn word() -> impl Strategy<Value = Word> {
    let texts = prop::sample::select(vec!["A-17", "happened", "did not happen", "stop", "", " "]);
    prop_oneof![
        3 => (0..6_u32, texts).prop_map(|(n, text)| Word::Reply(n, text)),
        1 => Just(Word::Message),
        2 => (1..6_usize).prop_map(Word::Goes),
    ]
}

proptest! {
    /// Whatever people say, and whenever: the history only grows and stays well formed, a lost call is not sent again,
    /// and a replay leads to the same.
    #[test]
    fn whatever_people_say_the_history_only_grows_and_nothing_is_sent_twice(words in prop::collection::vec(word(), 0..40)) {
        let answers = vec![
            asks(&[ask("Which?"), ("verify_identity", order()), ask("When?")]),
            asks(&[("process_refund", order()), ask("Why?"), ("note", order())]),
        ];
        let mut world = World::new(attended(), answers, |tool, _| {
            if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") }
        });
        let mut before: Vec<Turn> = Vec::new();
        for word in words {
            if world.conversation.outcome().is_some() {
                break;
            }
            match word {
                Word::Reply(n, text) => world.record(replies(n, text)),
                Word::Message => world.record(message("and be quick")),
                Word::Goes(events) => { let events = world.log.len() + events; world.play(events); }
            }
            prop_assert!(world.conversation.turns().starts_with(&before));
            before = world.conversation.turns().to_vec();
        }
        assert_history_is_well_formed(&world.conversation);
        let refunds = world.effects.iter().filter(|(tool, _)| tool == "process_refund").count();
        prop_assert!(refunds <= 1);
        let mut replayed = Conversation::new(attended());
        let mut chain = Chain::new("/test");
        for line in &world.log {
            replayed.apply(&chain.read(line).unwrap());
        }
        prop_assert_eq!(replayed.turns(), world.conversation.turns());
        prop_assert_eq!(replayed.questions(), world.conversation.questions());
        prop_assert_eq!(next(&replayed), next(&world.conversation));
    }
}

#[test]
fn a_gate_that_fails_otherwise_asks_nobody() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let mut world = attended_stages(seed::skill(), answers, &[(Stage::Finalization, &[GOAL_UNMET])]);
    world.people = |_| panic!("nobody is to be asked");
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::GateFailed);
}
