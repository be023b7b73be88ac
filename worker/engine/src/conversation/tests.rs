mod approvals;
mod cancelled;
mod context;
mod drift;
mod long;
mod questions;
mod replies;
mod seed;
mod seed_002;
mod stages;
mod too_long;

use super::fixture::{Reply, Tools, World, asks, good_answer, listed, run, says};
use super::{Conversation, Settlement, Stall, fix_catalogue};
use crate::event::{Answer, CallId, Event, ModelFailure, Told};
use crate::line::Chain;
use crate::projection::project;
use crate::run::Run;
use crate::step::{Step, next};
use crate::tool::ListedTool;
use crate::turn::Turn;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::report::ParkReason;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{FinalizationCode, GateReason, ResourceType, Stage, ToolName, Verdict};
use rstest::rstest;
use serde_json::{Value, json};

const ALL_WELL: Tools = |_, _| Reply::Completed("ok");

fn order() -> serde_json::Value {
    json!({"order_id": "A-17"})
}

fn refund() -> Vec<Answer> {
    vec![
        asks(&[("verify_identity", order()), ("check_eligibility", order())]),
        asks(&[("process_refund", json!({"order_id": "A-17", "amount": 49.9}))]),
        good_answer(),
    ]
}

fn ended(run: Run, answers: Vec<Answer>, tools: Tools) -> World {
    let mut world = World::new(run, answers, tools);
    world.play_out();
    assert!(world.conversation.outcome().is_some(), "{:?}", world.names());
    world
}

pub(super) fn code(world: &World) -> OutcomeCode {
    world.conversation.outcome().unwrap().code
}

/// Every provider demands it: each call has exactly one result, before anything else is said.
fn assert_history_is_well_formed(conversation: &Conversation) {
    let mut open = 0_usize;
    for turn in conversation.turns() {
        match turn {
            Turn::Assistant(said) => {
                assert_eq!(open, 0);
                let message: Value = serde_json::from_str(&said.message).unwrap();
                open = message["tool_calls"].as_array().map_or(0, Vec::len);
            }
            Turn::ToolResult { .. } => open = open.checked_sub(1).unwrap(),
            Turn::User(_) => assert_eq!(open, 0),
        }
    }
}

#[test]
fn a_refund_goes_through_all_stages() {
    let world = ended(run(), refund(), ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    insta::assert_snapshot!(world.names().join("\n"));
    let status = project(&world.conversation, Chain::new("/test").position("jobs/x"));
    assert_eq!(status.phase, Phase::Succeeded);
    assert_eq!((status.gates.pre_tool.allowed, status.usage.tool_calls, status.usage.llm_calls.plan), (3, 3, 3));
    let result = status.result.unwrap();
    assert_eq!((result.text.as_str(), &result.fields["status"]), ("Refunded.", &json!("refunded")));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_worker_lost_at_any_event_leads_to_the_same_end_with_each_effect_once() {
    let whole = ended(run(), refund(), ALL_WELL);
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        resumed.play_out();
        let sent_before = whole.names()[..cut].iter().filter(|name| **name == "tool.started").count();
        let effects = sent_before + resumed.effects.len();
        let in_flight = whole.names()[cut - 1] == "tool.started";
        let expected = if in_flight { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!((code(&resumed), effects), (expected, 1), "after {cut} events");
        let answered = whole.names()[..cut].iter().filter(|name| **name == "model.answered").count();
        let asked = if in_flight { 0 } else { 3 - answered };
        assert_eq!(resumed.asked as usize, asked, "no logged answer is asked for again: after {cut}");
        assert_history_is_well_formed(&resumed.conversation);
    }
}

#[test]
fn replay_ends_in_the_same_state() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut replayed = Conversation::new(run());
    let mut chain = Chain::new("/test");
    for line in &whole.log {
        replayed.apply(&chain.read(line).unwrap());
    }
    assert_eq!(project(&replayed, chain.position("p")), project(&whole.conversation, chain.position("p")));
    assert_eq!(replayed.turns(), whole.conversation.turns());
    assert!(matches!(next(&replayed), Step::Done(_)));
}

#[test]
fn a_lost_answer_of_an_effect_is_never_sent_again() {
    let world =
        ended(run(), refund(), |tool, _| if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") });
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
    assert_eq!(world.effects.len(), 1);
    assert_eq!(world.conversation.outcome().unwrap().phase(), Phase::Escalated);
}

#[test]
fn an_idempotent_call_is_sent_again_with_the_same_key() {
    let world =
        ended(
            run(),
            vec![asks(&[("note", order())])],
            |_, times| {
                if times < 3 { Reply::Lost } else { Reply::Completed("noted") }
            },
        );
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(world.effects.len(), 3);
    assert!(world.effects.iter().all(|effect| effect == &world.effects[0]));
}

#[test]
fn a_retry_knows_that_the_call_was_sent_before() {
    let mut world = World::new(run(), vec![asks(&[("note", order())])], |_, _| Reply::Lost);
    world.play_until(|conversation| matches!(next(conversation), Step::RunEffect(_)));
    let sent_before = |world: &World| match next(&world.conversation) {
        Step::RunEffect(call) => Some(call.sent_before),
        _ => None,
    };
    assert_eq!(sent_before(&world), Some(false));
    world.play(world.log.len() + 2);
    assert_eq!(sent_before(&world), Some(true));
}

/// Names are told as they are asked for: what stands in the log can be found at the server.
#[test]
fn the_status_has_the_names_that_providers_do_not_take() {
    let mut world = World::new(run(), Vec::new(), ALL_WELL);
    let odd = (0..20).map(|number| format!("orders.get/{number}"));
    let one = world.listed[0].clone();
    world.listed.splice(0..0, odd.map(|name| ListedTool { name, ..one.clone() }));
    world.play_until(|conversation| conversation.system().is_some());
    let names = project(&world.conversation, Chain::new("/test").position("p")).tool_names;
    assert_eq!(names.len(), 16);
    for ToolName { tool, alias } in &names {
        assert!(tool.len() <= 128 && world.conversation.tool(alias).unwrap().name == *tool, "{alias} is {tool}");
    }
    let mut world = World::new(run(), Vec::new(), ALL_WELL);
    world.listed = vec![one.clone(), ListedTool { name: "x".repeat(200), ..one }];
    world.play_until(|conversation| conversation.system().is_some());
    let names = project(&world.conversation, Chain::new("/test").position("p")).tool_names;
    assert!(names.len() == 1 && names[0].tool.len() <= 128 && names[0].alias.len() <= 64, "{names:?}");
}

#[test]
fn a_lost_read_is_repeated_and_never_escalates() {
    let world = ended(run(), vec![asks(&[("verify_identity", order())])], |_, _| Reply::Lost);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(world.names().iter().filter(|name| **name == "tool.indeterminate").count(), 3);
}

#[test]
fn effects_after_one_that_fell_through_are_skipped_and_reads_are_not() {
    let answers = vec![asks(&[
        ("process_refund", order()),
        ("note", order()),
        ("verify_identity", order()),
        ("note", json!({"order_id": "B"})),
    ])];
    let world =
        ended(
            run(),
            answers,
            |tool, _| if tool == "process_refund" { Reply::Failed("no") } else { Reply::Completed("ok") },
        );
    assert_eq!(world.effects.len(), 1);
    let names = world.names();
    assert_eq!(names.iter().filter(|name| **name == "tool.skipped").count(), 2);
    assert_eq!(names.iter().filter(|name| **name == "tool.completed").count(), 1);
    assert_history_is_well_formed(&world.conversation);
}

#[rstest]
#[case::unknown("drop_tables", order(), GateReason::Catalogue)]
#[case::blocked("delete_customer", order(), GateReason::Policy)]
#[case::against_the_schema("process_refund", json!({"amount": "much"}), GateReason::Schema)]
#[case::no_object("process_refund", json!([1]), GateReason::Schema)]
fn what_the_gate_denies_is_told_and_never_sent(
    #[case] tool: &str,
    #[case] arguments: serde_json::Value,
    #[case] layer: GateReason,
) {
    let world = ended(run(), vec![asks(&[(tool, arguments)])], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded, "the model may go on");
    assert_eq!(world.effects, []);
    let last = &world.conversation.pre_tool().last[0];
    assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(layer)));
    assert!(
        world
            .conversation
            .turns()
            .iter()
            .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.starts_with("Denied:")))
    );
}

/// What stands in a secret's place is no number, and nobody's fault.
#[rstest]
#[case::that_cannot_be_read(r#"{"order_id": "A-17", "amount": [redacted: pin]}"#)]
#[case::that_is_against_the_schema(r#"{"order_id": "A-17", "amount": "[redacted: pin]"}"#)]
fn of_arguments_with_a_secret_nothing_else_is_said(#[case] arguments: &str) {
    let mut answer = asks(&[("process_refund", json!({}))]);
    answer.calls[0].arguments = arguments.into();
    answer.calls[0].secrets = vec!["pin".into()];
    let world = ended(run(), vec![answer], ALL_WELL);
    assert_eq!(world.effects, []);
    let told = world.conversation.turns().iter().find_map(|turn| match turn {
        Turn::ToolResult { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let told = told.unwrap();
    assert!(told.contains("hold the value of pin") && !told.contains("Schema") && !told.contains("JSON"), "{told}");
}

/// A Job that binds an API, of which the Skill lets orders be read and notes be made; one call needs approval.
fn with_endpoint() -> Run {
    let mut run = run();
    run.skill.resources = serde_json::from_value(json!([{"name": "shop", "type": "api_endpoint", "rules": [
        {"methods": ["GET"], "paths": ["/orders/*"]}, {"methods": ["POST"], "paths": ["/notes", "/refunds"]},
    ]}]))
    .unwrap();
    let approval = json!({"toolId": "http_request", "when": "path == '/refunds'", "action": "require_approval"});
    run.skill.policy.get_or_insert_default().approvals = vec![serde_json::from_value(approval).unwrap()];
    let source = ResourceSource::Value("https://shop.example/v1".into());
    run.resources = vec![BoundResource { name: "shop".into(), kind: ResourceType::ApiEndpoint, source }];
    run
}

#[rstest]
#[case::another_method("http_request", json!({"method": "DELETE", "path": "/orders/7"}), GateReason::Endpoint)]
#[case::another_path("http_get", json!({"path": "/customers/7"}), GateReason::Endpoint)]
#[case::out_of_it("http_get", json!({"path": "/orders/../../admin"}), GateReason::Endpoint)]
#[case::a_header_of_ours("http_get", json!({"path": "/orders/7", "headers": {"Authorization": "x"}}), GateReason::Endpoint)]
#[case::a_change_by_a_tool_that_reads("http_get", json!({"method": "POST", "path": "/notes"}), GateReason::Endpoint)]
fn a_call_of_an_api_that_its_rules_do_not_allow_is_denied_and_told_why(
    #[case] tool: &str,
    #[case] arguments: serde_json::Value,
    #[case] layer: GateReason,
) {
    let world = ended(with_endpoint(), vec![asks(&[(tool, arguments)])], ALL_WELL);
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let last = &world.conversation.pre_tool().last[0];
    assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(layer)), "{last:?}");
}

#[test]
fn a_call_of_an_api_that_is_allowed_goes_the_way_of_every_call() {
    let reads = ("http_get", json!({"path": "/orders/7"}));
    let notes = ("http_request", json!({"method": "POST", "path": "/notes", "json": {"text": "x"}}));
    let world = ended(with_endpoint(), vec![asks(&[reads, notes.clone()])], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let made: Vec<&str> = world.effects.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(made, ["http_request"]);

    let lost = ended(with_endpoint(), vec![asks(&[notes])], |_, _| Reply::Lost);
    assert_eq!((code(&lost), lost.effects.len()), (OutcomeCode::ToolIndeterminate, 1));

    let refunds = ("http_request", json!({"method": "POST", "path": "/refunds", "json": {}}));
    let mut held = World::new(with_endpoint(), vec![asks(&[refunds])], ALL_WELL);
    held.play_out();
    assert_eq!((held.conversation.pre_tool().held, held.effects.len()), (1, 0));
}

#[test]
fn duplicate_keys_in_arguments_are_denied() {
    let mut answer = asks(&[("process_refund", order())]);
    answer.calls[0].arguments = r#"{"order_id":"A","order_id":"B"}"#.into();
    let world = ended(run(), vec![answer], ALL_WELL);
    assert_eq!((world.effects.len(), world.conversation.pre_tool().denied), (0, 1));
}

#[test]
fn every_reason_of_the_strictest_verdict_is_kept() {
    let mut limited = run();
    limited.limits.tool_calls = 0;
    let mut world = World::new(limited, vec![asks(&[("delete_customer", json!({}))])], ALL_WELL);
    world.play_out();
    let line = world.log.iter().find(|line| line.contains("tool.ruled")).unwrap();
    for layer in ["Policy", "Schema", "Limit"] {
        assert!(line.contains(layer), "{line}");
    }
}

#[test]
fn a_tool_that_the_policy_hides_is_not_offered() {
    let mut world = World::new(run(), vec![], ALL_WELL);
    world.play(4);
    let Step::CallModel(request) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    assert!(request.tools.iter().all(|tool| tool.name != "delete_customer"));
    assert_eq!(request.tools.len(), 5);
}

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

#[test]
fn a_call_that_keeps_failing_ends_stuck() {
    let again = || asks(&[("process_refund", order())]);
    let world = ended(run(), vec![again(), again(), again(), again()], |_, _| Reply::Failed("no such order"));
    assert_eq!(code(&world), OutcomeCode::Stuck);
    assert_eq!(world.effects.len(), 3);
    let told = world
        .conversation
        .turns()
        .iter()
        .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.contains("failed 2 times")));
    assert!(told);
}

#[test]
fn a_form_error_costs_no_attempt_and_no_tool_call() {
    let world =
        ended(run(), vec![says("done"), says("```json\n{\"order_id\": \"A-17\"}\n```"), good_answer()], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let finalization = world.conversation.finalization().projection();
    assert_eq!((finalization.form_errors, finalization.attempts.len(), finalization.passed), (2, 1, true));
}

#[test]
fn a_failed_attempt_must_bring_new_evidence() {
    let bad = || says("no block");
    let world = ended(run(), vec![bad(), bad(), bad(), bad()], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::GateFailed);
    assert!(world.conversation.outcome().unwrap().message.contains("without new evidence"));
    assert_eq!(world.conversation.finalization().attempts().len(), 1);
    assert!(!world.conversation.result().unwrap().verified);
}

#[test]
fn evidence_is_a_call_that_was_not_made_before() {
    let bad = || says("no block");
    let look = || asks(&[("verify_identity", order())]);
    let repeated = ended(run(), vec![look(), bad(), bad(), bad(), look(), good_answer()], ALL_WELL);
    assert_eq!(code(&repeated), OutcomeCode::GateFailed);
    let new = vec![look(), bad(), bad(), bad(), asks(&[("check_eligibility", order())]), good_answer()];
    assert_eq!(code(&ended(run(), new, ALL_WELL)), OutcomeCode::Succeeded);
}

#[test]
fn the_finalization_gate_fails_three_times_and_escalates() {
    let bad = || says("```json\n{\"order_id\": \"A-17\", \"status\": \"\"}\n```");
    let look = |id: &str| asks(&[("verify_identity", json!({"order_id": id}))]);
    let world = ended(run(), vec![bad(), bad(), bad(), look("1"), bad(), look("2"), bad(), look("3")], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::GateFailed);
    let finalization = world.conversation.finalization().projection();
    assert_eq!(finalization.attempts.len(), 3);
    assert_eq!(finalization.attempts[0].reasons[0].code, FinalizationCode::MissingRequiredField);
    assert_eq!(finalization.attempts[0].missing_fields, ["status"]);
}

#[test]
fn without_a_contract_prose_is_the_answer() {
    let mut free = run();
    free.skill.output_contract = None;
    let world = ended(free, vec![says("All is well.")], ALL_WELL);
    assert_eq!(world.conversation.result().unwrap().text, "All is well.");
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn an_empty_or_cut_answer_is_no_answer() {
    let mut free = run();
    free.skill.output_contract = None;
    let cut = Answer { cut: true, ..says("All is") };
    let world = ended(free, vec![says(" "), cut, says("All is well.")], ALL_WELL);
    assert_eq!(world.conversation.finalization().form_errors(), 2);
    assert_eq!(world.conversation.result().unwrap().text, "All is well.");
}

#[test]
fn unreadable_answers_are_asked_for_again_and_then_given_up() {
    let mut world = World::new(run(), vec![], ALL_WELL);
    world.play(4);
    for _ in 0..3 {
        assert!(matches!(next(&world.conversation), Step::CallModel(_)));
        world.record(Event::ModelRequested { stage: Stage::Plan, reserve: 5000 });
        world.record(Event::ModelFailed { kind: ModelFailure::Unreadable, message: "not JSON".into() });
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ModelUnavailable);
    assert_eq!(world.conversation.budget().tokens(), 15_000, "what was reserved counts as spent");
}

#[test]
fn epochs_that_bring_nothing_end_as_a_crash_loop() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut world = whole.resumed_from(5);
    for epoch in 3..5 {
        assert_eq!(world.conversation.stall(), None);
        world.record(Event::EpochStarted { epoch, attempt: 9 });
    }
    assert_eq!(world.conversation.stall(), None);
    world.record(Event::EpochStarted { epoch: 5, attempt: 9 });
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}

#[test]
fn what_a_call_tells_before_its_worker_is_lost_is_nothing_new() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut world = whole.resumed_from(5);
    for epoch in 3..6 {
        assert_eq!(world.conversation.stall(), None);
        world.record(Event::ToolProgressed { call: CallId::new(7, 0), told: Told::default() });
        world.record(Event::EpochStarted { epoch, attempt: 9 });
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}

#[test]
fn epochs_that_only_park_end_too_and_much_later() {
    let whole = ended(run(), refund(), ALL_WELL);
    // The epoch that it begins with brings nothing either.
    let mut world = whole.resumed_from(5);
    for epoch in 3..23 {
        assert_eq!(world.conversation.stall(), None, "epoch {epoch}");
        world.record(Event::Parked { reason: ParkReason::Drain });
        world.record(Event::EpochStarted { epoch, attempt: 9 });
    }
    assert_eq!(world.conversation.stall(), Some(Stall::Drains));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.contains("20 pods") && message.contains("drain"), "{message}");
}

#[test]
fn a_drain_is_no_crash_and_progress_begins_both_counts_anew() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let start = |world: &mut World, epochs: std::ops::RangeInclusive<u64>| {
        for epoch in epochs {
            world.record(Event::EpochStarted { epoch, attempt: 9 });
        }
    };
    start(&mut world, 2..=3);
    world.record(Event::Parked { reason: ParkReason::Drain });
    start(&mut world, 4..=6);
    assert_eq!(world.conversation.stall(), None, "three crashes since the drain, and no fourth start");
    world.record(fix_catalogue(&run(), listed()));
    start(&mut world, 7..=9);
    assert_eq!(world.conversation.stall(), None);
    start(&mut world, 10..=10);
    assert_eq!(world.conversation.stall(), Some(Stall::Crashes));
}

#[test]
fn the_first_turns_never_change() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let mut before: Vec<Turn> = Vec::new();
    while !matches!(next(&world.conversation), Step::Done(_)) {
        let length = world.log.len() + 1;
        world.play(length);
        assert!(world.conversation.turns().starts_with(&before));
        before = world.conversation.turns().to_vec();
    }
}

#[test]
fn a_skipped_call_is_settled_as_skipped() {
    let answers = vec![asks(&[("drop_tables", order()), ("process_refund", order())])];
    let mut world = World::new(run(), answers, ALL_WELL);
    world.play(5);
    while !world.conversation.calls().is_empty() {
        let skipped =
            world.conversation.calls().iter().any(|call| call.state == super::CallState::Settled(Settlement::Skipped));
        if skipped {
            break;
        }
        let length = world.log.len() + 1;
        world.play(length);
    }
    assert_eq!(world.effects, []);
    assert!(world.names().contains(&"tool.skipped"));
}

#[test]
fn a_call_of_an_answer_that_was_cut_off_is_never_made() {
    let mut cut = asks(&[("process_refund", order())]);
    cut.cut = true;
    let world = ended(run(), vec![cut], ALL_WELL);
    assert_eq!((world.effects.len(), world.conversation.pre_tool().denied), (0, 1));
}

#[test]
fn the_same_call_three_times_in_one_answer_is_one_failure() {
    let thrice = [("verify_identity", order()), ("verify_identity", order()), ("verify_identity", order())];
    let world = ended(run(), vec![asks(&thrice)], |_, _| Reply::Failed("not now"));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn a_lost_effect_is_told_even_where_workers_crash_again_and_again() {
    let whole = ended(run(), refund(), ALL_WELL);
    let cut = whole.names().iter().position(|name| *name == "tool.started").unwrap() + 1;
    let mut world = whole.resumed_from(cut);
    for epoch in 3..7 {
        world.record(Event::EpochStarted { epoch, attempt: 9 });
    }
    assert_eq!(world.conversation.stall(), Some(Stall::Crashes));
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
}
