//! Questions to people, and their messages.

mod replies;

use crate::conversation::Conversation;
use crate::event::{Event, QuestionId, QuestionSubject};
use crate::fixture::attended::*;
use crate::fixture::checks::*;
use crate::fixture::seed;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::line::Chain;
use crate::next::next;
use crate::people::{HumanRequest, MAX_STATEMENT_BYTES, Statement};
use crate::projection::project;
use crate::stages::questions::StrayReply;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{SkillSpec, Stage};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

#[test]
fn an_answer_is_the_result_of_its_ask_user_call() {
    let choice = ("ask_user", json!({"text": "Which order?", "choices": ["A-17", "B-4"]}));
    let world = attended_world(attended(), vec![asks(&[choice])], first_choice);
    assert_eq!((code(&world), results(&world.conversation)), (OutcomeCode::Succeeded, vec!["A-17"]));
    assert_eq!(world.conversation.questions().open(), []);
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn adjacent_questions_are_asked_at_once_and_answered_in_any_order() {
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
fn invalid_arguments_of_ask_user_are_denied(#[case] arguments: Value) {
    let world = attended_world(attended(), vec![asks(&[("ask_user", arguments)])], |_| panic!("nobody is to be asked"));
    assert!(results(&world.conversation)[0].starts_with("Denied:"), "{:?}", results(&world.conversation));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn without_people_ask_user_is_not_offered_and_its_calls_are_denied() {
    let alone = attended_world(run(), vec![asks(&[ask("Which?")])], |_| panic!("nobody is to be asked"));
    assert!(alone.conversation.visible_tools().iter().all(|tool| tool.name != "ask_user"));
    assert!(results(&alone.conversation)[0].contains("there is no tool \"ask_user\""));
    // If a later attempt has no people, the tool stays listed, and its calls fail.
    let mut begun = World::new(attended(), vec![asks(&[ask("Which?")])], ALL_WELL);
    begun.play_until(|conversation| !conversation.calls().is_empty());
    let mut left = begun.resumed_with(run());
    left.play_out();
    assert!(results(&left.conversation)[0].contains("no person can be asked any more"));
    assert_eq!(code(&left), OutcomeCode::Succeeded);
}

#[test]
fn a_reply_to_no_open_question_changes_nothing_and_is_kept() {
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
    assert_eq!(world.conversation.questions().stray_replies(), kept);
    for n in 10..30 {
        world.record(replies(n, "?"));
    }
    let questions = world.conversation.questions();
    assert_eq!((questions.stray_replies().len(), questions.stray_count()), (8, 23), "all are counted, the latest kept");
}

#[test]
fn an_answer_is_new_evidence() {
    let bad = || says("no block");
    let again =
        attended_world(attended(), vec![bad(), bad(), bad(), asks(&[ask("Which?")]), good_answer()], first_choice);
    assert_eq!(code(&again), OutcomeCode::Succeeded);
    // Without a reply, there is no new evidence, and the gate fails.
    let without = attended_world(attended(), vec![bad(), bad(), bad(), bad()], first_choice);
    assert_eq!(code(&without), OutcomeCode::GateFailed);
}

/// Returns a Skill whose first intent requires three entities.
fn skill_with_three_entities() -> SkillSpec {
    let mut skill = seed::skill();
    let amount = json!({"name": "amount", "type": "number", "required": true});
    let urgent = json!({"name": "urgent", "type": "boolean", "required": true});
    let entities = &mut skill.intents.as_mut().unwrap().supported[0].entities;
    entities.extend([amount, urgent].map(|entity| serde_json::from_value(entity).unwrap()));
    skill
}

#[test]
fn missing_entities_are_asked_for_at_once_and_read_by_their_type() {
    let nameless = r#"{"intent": "intent_refund", "entities": {}}"#;
    let mut world = attended_stages(
        skill_with_three_entities(),
        vec![looked_up(), refunds(5.0), answer("Done.")],
        &[(Stage::Intent, &[nameless]), (Stage::Polish, &["Done."])],
    );
    world.people = |_| None;
    world.play_out();
    let about: Vec<QuestionSubject> = open(&world).into_iter().map(|(_, about)| about).collect();
    assert_eq!(about, ["order_id", "amount", "urgent"].map(|name| QuestionSubject::Entity(name.into())));
    assert_eq!(world.conversation.questions().open()[2].question.choices, ["true", "false"]);
    assert_eq!(world.asked, 0, "the main loop waits");
    for (n, text) in [(2, "much"), (2, " 49.9 "), (1, ""), (1, "A-17"), (3, "yes"), (3, "true")] {
        world.record(replies(n, text));
    }
    assert_eq!(world.conversation.questions().stray_replies(), []);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let intent = world.conversation.shared.intent.as_ref().unwrap();
    assert_eq!(Value::Object(intent.entities.clone()), json!({"amount": 49.9, "order_id": "A-17", "urgent": true}));
    let said = said_by_users(&world.conversation);
    assert_eq!(said[1..4], ["amount: 49.9", "order_id: A-17", "urgent: true"]);
}

#[test]
fn an_invalid_reply_leaves_its_question_open_with_the_reason() {
    let nameless = r#"{"intent": "intent_refund", "entities": {"order_id": "A-17", "urgent": true}}"#;
    let mut world = attended_stages(skill_with_three_entities(), vec![], &[(Stage::Intent, &[nameless])]);
    world.people = |_| None;
    world.play_out();
    world.record(replies(1, "a lot"));
    let [left] = world.conversation.questions().open() else { panic!("{:?}", open(&world)) };
    assert_eq!(left.refused.as_deref(), Some("\"a lot\" is not of the type number"));
}

const UNCLEAR: &str = r#"{"passed": false, "reasons": [{"code": "GOAL_NOT_MET", "detail": "no address"}], "suggested_action": "CLARIFY_USER"}"#;

const PASSES: &str = r#"{"passed": true, "reasons": []}"#;

#[test]
fn a_clarification_is_asked_for_and_leads_to_the_next_attempt() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let stages: [(Stage, &[&'static str]); 2] = [(Stage::Finalization, &[UNCLEAR, PASSES]), (Stage::Polish, &["Two."])];
    let mut world = attended_stages(seed::skill(), answers.clone(), &stages);
    world.people = |open| {
        let [HumanRequest::Question(asked)] = open else { panic!("{open:?}") };
        assert_eq!(asked.question.text, "The answer cannot go out before you have said more: no address");
        reply(open, |_| "Mill Lane 3".to_owned())
    };
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let expected = "Your answer did not pass: no address. The user was asked about it, and says: Mill Lane 3";
    assert_eq!(said_by_users(&world.conversation).last(), Some(&expected));
    assert_eq!(world.conversation.finalization.attempts().len(), 2);

    let mut alone = staged(seed::skill(), answers, &stages);
    alone.play_out();
    assert_eq!(code(&alone), OutcomeCode::UserNeeded);
}

#[test]
fn no_clarification_is_asked_for_after_the_last_attempt() {
    let mut skill = seed::skill();
    skill.engine.get_or_insert_default().finalization_gate.get_or_insert_default().max_retries = Some(0);
    let answers = vec![looked_up(), refunds(5.0), answer("One.")];
    let mut world = attended_stages(skill, answers, &[(Stage::Finalization, &[UNCLEAR])]);
    world.people = |_| panic!("nobody is to be asked");
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::UserNeeded);
}

#[test]
fn a_message_joins_the_history_after_all_results_of_the_last_answer() {
    let mut world =
        World::new(attended(), vec![asks(&[("note", order()), ("note", json!({"order_id": "B"}))])], ALL_WELL);
    world.record(message("before it is open"));
    world.play_until(|conversation| conversation.calls().iter().any(crate::stages::calls::Call::is_settled));
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
fn a_message_withdraws_a_pending_draft() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let mut world = attended_stages(seed::skill(), answers, &[(Stage::Polish, &["Two."])]);
    world.play_until(|conversation| conversation.finalization.pending().is_some());
    world.record(message("to Mill Lane 3, please"));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let status = project(&world.conversation, Chain::new("/test").position("p"));
    assert_eq!((status.result.unwrap().text.as_str(), status.gates.finalization.attempts.len()), ("Two.", 1));
    // After an answer has passed, a message changes nothing.
    world.record(message("too late"));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn a_message_is_new_evidence() {
    let failed = [says("no block"), says("no block"), says("no block"), good_answer()];
    let mut world = World::new(attended(), failed.to_vec(), ALL_WELL);
    world.play_until(|conversation| conversation.finalization.needs_evidence());
    world.record(message("the order is A-17"));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn statements_of_people_are_bounded() {
    let Event::UserMessage { text, by, nth: _ } =
        Event::from(Statement::Message { text: "x".repeat(1 << 20), by: "j".repeat(1 << 20), nth: None })
    else {
        panic!("another event")
    };
    assert!(text.len() <= MAX_STATEMENT_BYTES && by.len() <= 256);
}

#[test]
fn after_a_worker_lost_at_any_event_only_open_questions_are_asked_again() {
    let answers = vec![asks(&[ask("Which?"), ask("When?"), ("note", order())]), good_answer()];
    let whole = attended_world(attended(), answers, first_choice);
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
enum Action {
    Reply(u32, &'static str),
    Message,
    /// Continue until the log has this many more events.
    Events(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let texts = prop::sample::select(vec!["A-17", "happened", "did not happen", "stop", "", " "]);
    prop_oneof![
        3 => (0..6_u32, texts).prop_map(|(n, text)| Action::Reply(n, text)),
        1 => Just(Action::Message),
        2 => (1..6_usize).prop_map(Action::Events),
    ]
}

proptest! {
    /// For any statements at any time: the history only grows and stays well formed, a lost call is not sent again, and a
    /// replay ends in the same state.
    #[test]
    fn no_statements_change_earlier_turns_or_send_a_call_twice(actions in prop::collection::vec(action(), 0..40)) {
        let answers = vec![
            asks(&[ask("Which?"), ("verify_identity", order()), ask("When?")]),
            asks(&[("process_refund", order()), ask("Why?"), ("note", order())]),
        ];
        let mut world = World::new(attended(), answers, |tool, _| {
            if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") }
        });
        let mut before: Vec<Turn> = Vec::new();
        for action in actions {
            if world.conversation.outcome().is_some() {
                break;
            }
            match action {
                Action::Reply(n, text) => world.record(replies(n, text)),
                Action::Message => world.record(message("and be quick")),
                Action::Events(events) => { let events = world.log.len() + events; world.play(events); }
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
fn a_failed_attempt_without_a_need_for_clarification_asks_no_question() {
    let answers = vec![looked_up(), refunds(5.0), answer("One."), answer("Two.")];
    let mut world = attended_stages(seed::skill(), answers, &[(Stage::Finalization, &[GOAL_UNMET])]);
    world.people = |_| panic!("nobody is to be asked");
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::GateFailed);
}
