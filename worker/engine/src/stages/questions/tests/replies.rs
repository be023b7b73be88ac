//! The replies of a Job's spec, and the questions in its status.

use crate::event::{Event, QuestionId, QuestionSubject, UserQuestion};
use crate::fixture::attended::*;
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::people::Statement;
use crate::projection::project;
use crate::stages::calls::CallState;
use bloomery_crds::Digest;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{MAX_REMARK_BYTES, MAX_REMARKS, ParkReason, Projection};
use bloomery_crds::v1alpha1::{AskedQuestion, LogPosition, WaitingFor};
use serde_json::{Value, json};

/// Returns the `nth` reply of the Job's spec.
fn given(nth: u32, to: u32, text: &str) -> Statement {
    Statement::Reply { question: QuestionId::new(to), text: text.into(), by: "a person".into(), nth: Some(nth) }
}

#[test]
fn a_reply_of_the_spec_counts_once_even_if_repeated() {
    let mut world = attended_world(attended(), vec![asks(&[ask("Which?")])], |_| None);
    assert_eq!(projected(&world).replies_heard, 0);
    for said in [given(1, 7, "to nobody"), given(2, 1, "A-17")] {
        assert!(world.conversation.is_relevant(&said));
        world.record(said.clone().into());
        assert!(!world.conversation.is_relevant(&said), "{said:?} was taken");
    }
    assert!(!world.conversation.is_relevant(&given(1, 1, "B-4")), "even with another text: replies do not change");
    let message = Statement::Message { text: "be quick".into(), by: "a person".into(), nth: Some(3) };
    assert!(world.conversation.is_relevant(&message));
    world.record(message.clone().into());
    assert!(!world.conversation.is_relevant(&message));
    assert_eq!(projected(&world).replies_heard, 3);
    // Messages from a terminal have no position: a repeated message counts twice.
    assert!(world.conversation.is_relevant(&Statement::Message {
        text: "be quick".into(),
        by: "jane".into(),
        nth: None
    }));
}

fn projected(world: &World) -> Projection {
    let log = LogPosition { path: "jobs/k-1".into(), events: world.conversation.events(), head: Digest::of_bytes(b"") };
    project(&world.conversation, log)
}

#[test]
fn questions_are_in_the_status_once_nothing_else_is_to_do() {
    let mut world = World::new(attended(), vec![asks(&[ask("Which?"), ask("Where?")])], ALL_WELL);
    world.people = |_| None;
    world.play_until(|conversation| conversation.questions().open().len() == 2);
    world.play_out();
    let waiting = projected(&world).waiting_for.unwrap();
    assert_eq!((projected(&world).phase, waiting.call, waiting.since), (Phase::AwaitingReply, None, None));
    let shown: Vec<(String, String)> = waiting.questions.into_iter().map(|asked| (asked.id, asked.text)).collect();
    assert_eq!(shown, [("q-1", "Which?"), ("q-2", "Where?")].map(|(id, text)| (id.to_owned(), text.to_owned())));
    world.record(Event::Parked { reason: ParkReason::Reply });
    assert_eq!(projected(&world).phase, Phase::AwaitingReply, "also after parking");

    world.record(replies(1, "A-17"));
    world.record(replies(2, "Mill Lane"));
    let projection = projected(&world);
    assert_eq!((projection.phase == Phase::AwaitingReply, projection.waiting_for), (false, None));
}

#[test]
fn a_conversation_with_further_steps_is_not_waiting() {
    let mut world = World::new(attended(), vec![asks(&[ask("Which?"), ask("Where?")])], ALL_WELL);
    world.people = |_| None;
    // The first question is open, and the gate has not ruled on the second one.
    world.play_until(|conversation| conversation.calls().iter().any(|call| call.state == CallState::Allowed));
    world.record(Event::UserAsked {
        question: UserQuestion { id: QuestionId::new(1), text: "Which?".into(), choices: Vec::new() },
        about: QuestionSubject::Call(world.conversation.calls()[0].id.clone()),
    });
    assert_eq!(open(&world).len(), 1);
    assert_eq!((projected(&world).waiting_for, projected(&world).phase), (None, Phase::Running));
}

#[test]
fn questions_in_the_status_are_bounded() {
    let choices = vec!["\u{e4}".repeat(128); 8];
    let long = json!({"text": "\u{e4}".repeat(1000), "choices": choices});
    let asked: Vec<(&str, Value)> = (0..20).map(|_| ("ask_user", long.clone())).collect();
    let mut world = attended_world(attended(), vec![asks(&asked)], |_| None);
    let questions = projected(&world).waiting_for.unwrap().questions;
    assert_eq!((questions.len(), questions[0].id.as_str()), (WaitingFor::MAX_QUESTIONS, "q-1"));
    let [first, ..] = questions.as_slice() else { panic!("{questions:?}") };
    assert!(first.text.len() <= AskedQuestion::MAX_TEXT_BYTES && first.choices.len() == 8);
    assert!(first.choices.iter().all(|choice| choice.len() <= AskedQuestion::MAX_CHOICE_BYTES));
    for n in 100..150 {
        world.record(given(n, n, &"\u{e4}".repeat(1000)).into());
    }
    let strays = projected(&world).stray_replies;
    assert_eq!((strays.len(), strays.iter().all(|stray| stray.len() <= MAX_REMARK_BYTES)), (MAX_REMARKS, true));
    assert!(strays[7].starts_with("reply 149 is to q-149, which was never asked: "), "{strays:?}");
}

#[test]
fn the_position_of_a_reply_is_written_only_if_it_has_one() {
    let written = |event: &Event| serde_json::to_value(event).unwrap();
    let of_spec = written(&given(2, 1, "A-17").into());
    assert_eq!(of_spec["data"], json!({"question": "q-1", "text": "A-17", "by": "a person", "nth": 2}));
    assert!(!written(&replies(1, "A-17")).to_string().contains("nth"), "as earlier versions wrote it");
    assert!(!written(&message("be quick")).to_string().contains("nth"));
}
