//! Calls that people have to approve.

use crate::catalogue::fix_catalogue;
use crate::conversation::Conversation;
use crate::event::{Answer, Arguments, CallId, Decision, Event};
use crate::fixture;
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::line::Chain;
use crate::next::next;
use crate::people::{ApprovalRequest, HumanRequest, Statement};
use crate::projection::project;
use crate::rules::Objection;
use crate::run::Run;
use crate::stages::calls::{CallState, Settlement};
use crate::step::Step;
use bloomery_crds::Digest;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{GateReason, HeldCall, Verdict};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

/// Refunds over 500 need the approval of the supervisor, over 800 also of finance. `check_eligibility` always needs approval.
fn supervised() -> Run {
    let mut run = run();
    let policy = run.skill.policy.as_mut().unwrap();
    policy.approvals = serde_json::from_value(json!([
        {"toolId": "process_refund", "when": "amount > 500", "action": "require_approval", "approver": "supervisor"},
        {"toolId": "process_refund", "when": "amount > 800", "action": "require_approval", "approver": "finance"},
        {"toolId": "check_eligibility", "action": "require_approval", "approver": "supervisor"},
    ]))
    .unwrap();
    run
}

fn refunds(amount: u32) -> (&'static str, serde_json::Value) {
    ("process_refund", json!({"order_id": "A-17", "amount": amount}))
}

fn approves(asks: &[HumanRequest<'_>]) -> Option<Statement> {
    decide(asks, |held| held.approve(by_jane(held.approvers[0], None)))
}

fn denies(asks: &[HumanRequest<'_>]) -> Option<Statement> {
    decide(asks, |held| held.deny(by_jane(held.approvers[0], Some("it arrived whole"))))
}

fn by_jane(approver: &str, reason: Option<&str>) -> Decision {
    Decision { approver: approver.into(), by: "jane".into(), reason: reason.map(str::to_owned) }
}

fn decide(asks: &[HumanRequest<'_>], how: impl Fn(&ApprovalRequest<'_>) -> Statement) -> Option<Statement> {
    asks.iter().find_map(|ask| if let HumanRequest::Approval(held) = ask { Some(how(held)) } else { None })
}

fn world(run: Run, answers: Vec<Answer>, people: fixture::People) -> World {
    let mut world = World::new(run, answers, ALL_WELL);
    world.people = people;
    world.play_out();
    world
}

fn results(world: &World) -> Vec<&str> {
    let turns = world.conversation.turns().iter();
    turns.filter_map(|turn| if let Turn::ToolResult { text, .. } = turn { Some(text.as_str()) } else { None }).collect()
}

fn projected(conversation: &Conversation) -> bloomery_crds::report::Projection {
    project(conversation, Chain::new("/test").position("p"))
}

#[test]
fn an_approved_call_is_ruled_on_again_and_made_once() {
    let world = world(supervised(), vec![asks(&[refunds(600)])], approves);
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 1));
    let calls: Vec<&str> = world.names().into_iter().filter(|name| name.starts_with("tool.")).collect();
    assert_eq!(
        calls,
        ["tool.requested", "tool.ruled", "tool.held", "tool.approved", "tool.ruled", "tool.started", "tool.completed"]
    );
    let gate = projected(&world.conversation).gates.pre_tool;
    assert_eq!((gate.held, gate.allowed, gate.denied), (1, 1, 0));
}

#[test]
fn two_holds_with_different_approvers_need_both() {
    let mut world = World::new(supervised(), vec![asks(&[refunds(900)])], ALL_WELL);
    world.people = |asks| decide(asks, |held| held.approve(by_jane("finance", None)));
    world.play_until(|conversation| {
        conversation.shared.calls.held().is_some_and(|held| held.approvers == ["supervisor"])
    });
    let Step::AskPeople(open) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    let [HumanRequest::Approval(held)] = open.as_slice() else { panic!("{open:?}") };
    assert_eq!(held.approvers, ["supervisor"]);
    assert_eq!(
        held.reasons.iter().map(|reason| reason.detail.as_str()).collect::<Vec<_>>(),
        ["amount > 500 needs approval"]
    );
    let status = projected(&world.conversation);
    assert_eq!((status.phase, world.effects.len()), (Phase::AwaitingApproval, 0));

    world.people = approves;
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 1));
    assert_eq!(projected(&world.conversation).waiting_for, None);
}

/// The approvers of a refund of 600 whose tool requires the approval of every call.
#[rstest]
#[case::no_source_names_one(
    json!({"guardrails": {"always": ["process_refund requires approval"]}, "approvals": [{"toolId": "process_refund"}]}),
    &["default"]
)]
#[case::a_rule_names_one(
    json!({
        "guardrails": {"always": ["process_refund requires approval"]},
        "approvals": [{"toolId": "process_refund"}, {"toolId": "process_refund", "approver": "supervisor"}],
        "limits": [{"tool": "process_refund", "sum": "amount", "per": "job", "max": 100}],
    }),
    &["supervisor"]
)]
#[case::a_limit_names_one(
    json!({
        "guardrails": {"always": ["process_refund requires approval"]},
        "limits": [{"tool": "process_refund", "sum": "amount", "per": "job", "max": 100, "approver": "finance"}],
    }),
    &["finance"]
)]
#[case::two_rules_name_others(
    json!({"approvals": [
        {"toolId": "process_refund", "approver": "supervisor"},
        {"toolId": "process_refund", "when": "amount > 500", "approver": "finance"},
    ]}),
    &["finance", "supervisor"]
)]
#[case::a_rule_that_does_not_hold_the_call(
    json!({"approvals": [{"toolId": "process_refund", "when": "amount > 900", "approver": "supervisor"}]}),
    &["default"]
)]
#[case::a_rule_of_another_tool(json!({"approvals": [{"toolId": "note", "approver": "supervisor"}]}), &["default"])]
fn the_default_approver_is_asked_only_where_no_rule_names_one(
    #[case] policy: serde_json::Value,
    #[case] expected: &[&str],
) {
    let mut run = run();
    run.skill.policy = serde_json::from_value(policy).unwrap();
    run.skill.tools[2].policy = serde_json::from_value(json!({"requiresApproval": "always"})).unwrap();
    let mut world = World::new(run, vec![asks(&[refunds(600)])], ALL_WELL);
    world.play_out();
    assert_eq!(world.conversation.shared.calls.held().unwrap().approvers, expected);
    let mut decided = world.resumed_from(world.log.len());
    decided.people = approves;
    decided.play_out();
    let approved = decided.names().into_iter().filter(|name| *name == "tool.approved").count();
    assert_eq!((approved, decided.effects.len()), (expected.len(), 1), "{:?}", decided.names());
}

#[test]
fn a_named_approver_reads_the_reasons_that_name_none() {
    let mut run = supervised();
    run.skill.tools[2].policy = serde_json::from_value(json!({"requiresApproval": "always"})).unwrap();
    let mut world = World::new(run, vec![asks(&[refunds(600)])], ALL_WELL);
    world.play_until(|conversation| conversation.shared.calls.held().is_some());
    let Step::AskPeople(open) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    let [HumanRequest::Approval(held)] = open.as_slice() else { panic!("{open:?}") };
    let reasons: Vec<_> =
        held.reasons.iter().map(|reason| (reason.detail.as_str(), reason.approver.as_deref().unwrap())).collect();
    assert_eq!(
        reasons,
        [("every call of this tool needs approval", "supervisor"), ("amount > 500 needs approval", "supervisor")]
    );
}

#[test]
fn a_named_approver_lifts_no_denial_of_the_tools_policy() {
    let mut run = supervised();
    run.skill.tools[2].policy =
        serde_json::from_value(json!({"allowed": "never", "requiresApproval": "always"})).unwrap();
    let world = world(run, vec![asks(&[refunds(600)])], approves);
    assert_eq!(world.conversation.shared.calls.rulings().last[0].verdict, Verdict::Deny);
    assert_eq!(world.effects.len(), 0);
}

/// An earlier version also asked the default approver if a rule named one. A call that such a version held needs both, once.
#[test]
fn a_call_that_an_earlier_version_held_for_two_approvers_is_made_after_both_approved() {
    let mut run = supervised();
    run.skill.tools[2].policy = serde_json::from_value(json!({"requiresApproval": "always"})).unwrap();
    let whole = world(run, vec![asks(&[refunds(600)])], |_| None);
    let requested = whole.names().iter().position(|name| *name == "tool.requested").unwrap() + 1;
    let mut world = whole.resumed_from(requested);
    let call = &world.conversation.calls()[0];
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { panic!("{call:?}") };
    let (id, digest) = (call.id.clone(), arguments.digest().clone());
    let hold = |layer, detail: &str, approver: &str| Objection::hold(layer, detail, Some(approver)).reason;
    let reasons = vec![
        hold(GateReason::ToolPolicy, "every call of this tool needs approval", "default"),
        hold(GateReason::Approval, "amount > 500 needs approval", "supervisor"),
    ];
    world.record(Event::ToolRuled { call: id.clone(), verdict: Verdict::Hold, reasons });
    let approvers = vec!["default".into(), "supervisor".into()];
    let (tool, reason) = ("process_refund".into(), "amount > 500 needs approval".into());
    world.record(Event::ToolHeld {
        held: HeldCall { id: id.to_string(), tool, digest: digest.clone(), approvers, reason },
    });
    for (approver, effects) in [("supervisor", 0), ("default", 1)] {
        let (call, digest) = (id.clone(), digest.clone());
        world.record(Event::ToolApproved { call, digest, decision: by_jane(approver, None) });
        world.play_out();
        assert_eq!(world.effects.len(), effects, "after {approver}: {:?}", world.names());
    }
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn the_model_reads_the_reason_of_a_denial_and_later_effects_are_skipped() {
    let answer = asks(&[refunds(600), ("note", order()), ("verify_identity", order())]);
    let world = world(supervised(), vec![answer], denies);
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let results = results(&world);
    assert_eq!(
        results[0],
        "Denied by a person: jane denied it for supervisor: it arrived whole. The call was not made."
    );
    assert!(results[1].starts_with("Skipped:"), "{results:?}");
    assert_eq!(results[2], "ok", "a read goes on");
    assert_history_is_well_formed(&world.conversation);
    let gate = projected(&world.conversation).gates.pre_tool;
    assert_eq!((gate.held, gate.denied), (1, 1));
    let last = gate.last.iter().find(|ruling| ruling.verdict == Verdict::Deny).unwrap();
    assert_eq!(last.reason.as_deref(), Some("jane denied it for supervisor: it arrived whole"));
}

#[test]
fn reads_before_a_held_call_run_and_all_calls_after_it_wait() {
    let answer = asks(&[("verify_identity", order()), refunds(600), ("verify_identity", order()), ("note", order())]);
    let mut world = World::new(supervised(), vec![answer], ALL_WELL);
    world.play_out();
    let states: Vec<CallState> = world.conversation.calls().iter().map(|call| call.state).collect();
    let done = CallState::Settled(Settlement::Completed);
    assert_eq!(states, [done, CallState::Held, CallState::Requested, CallState::Requested]);

    let mut resumed = world.resumed_from(world.log.len());
    let before = resumed.conversation.turns().to_vec();
    resumed.people = approves;
    resumed.play_out();
    assert_eq!(code(&resumed), OutcomeCode::Succeeded);
    assert_eq!(resumed.effects.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), ["process_refund", "note"]);
    assert!(resumed.conversation.turns().starts_with(&before), "the history has only grown");
    assert_history_is_well_formed(&resumed.conversation);
}

#[test]
fn held_reads_are_asked_about_together_while_other_reads_run() {
    let answer = asks(&[
        ("check_eligibility", order()),
        ("verify_identity", order()),
        ("check_eligibility", json!({"order_id": "B-4"})),
        ("note", order()),
    ]);
    let mut world = World::new(supervised(), vec![answer], ALL_WELL);
    world.play_out();
    let states: Vec<CallState> = world.conversation.calls().iter().map(|call| call.state).collect();
    let done = CallState::Settled(Settlement::Completed);
    assert_eq!(states, [CallState::Held, done, CallState::Held, CallState::Requested]);
    let Step::AskPeople(open) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    assert_eq!(open.len(), 2);
}

#[test]
fn a_limit_is_stricter_than_a_hold() {
    let mut run = supervised();
    run.limits.tool_calls = 1;
    let answers = vec![asks(&[("verify_identity", order())]), asks(&[refunds(600)])];
    let world = world(run, answers, |_| panic!("nobody is to be asked"));
    let last = world.conversation.shared.calls.rulings().last.last().unwrap();
    assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(GateReason::Limit)));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::ToolCallLimit, 0));
}

/// A held call does not count as spent; calls that the gate allows meanwhile do.
#[test]
fn a_limit_that_is_reached_before_the_approval_denies_the_approved_call() {
    let mut run = supervised();
    run.limits.tool_calls = 1;
    let answer = asks(&[("check_eligibility", order()), ("verify_identity", order())]);
    let world = world(run, vec![answer], approves);
    let results = results(&world);
    assert!(results[0].starts_with("Denied: all 1 tool calls of limits.toolCalls are spent"), "{results:?}");
    assert_eq!(results[1], "ok");
}

#[test]
fn a_spent_duration_ends_a_conversation_before_its_approved_call() {
    let mut world = World::new(supervised(), vec![asks(&[refunds(600)])], ALL_WELL);
    world.people = approves;
    world.play_until(is_approved);
    let mut run = supervised();
    run.limits.duration_seconds = 0;
    let mut late = world.resumed_with(run);
    late.play_out();
    assert_eq!((code(&late), late.effects.len()), (OutcomeCode::DurationLimit, 0));
}

/// Returns whether a call is approved, and the gate has not ruled on it again.
fn is_approved(conversation: &Conversation) -> bool {
    conversation.calls().iter().any(|call| call.state == CallState::Requested && call.held.is_some())
}

/// A running Job never sees another Skill. If it did, its approval would not lift a denial.
#[test]
fn an_approval_lifts_no_denial() {
    let mut world = World::new(supervised(), vec![asks(&[refunds(600)])], ALL_WELL);
    world.people = approves;
    world.play_until(is_approved);
    let mut run = supervised();
    run.skill.policy.as_mut().unwrap().tools.as_mut().unwrap().blocked.push("process_refund".into());
    let mut denied = world.resumed_with(run);
    denied.play_out();
    assert_eq!(denied.effects.len(), 0);
    assert!(results(&denied)[0].starts_with("Denied: the Skill's policy.tools.blocked"), "{:?}", results(&denied));
}

#[test]
fn a_held_call_with_arguments_too_large_to_review_is_denied() {
    let long = json!({"order_id": "x".repeat(16 * 1024), "amount": 600});
    let world = world(supervised(), vec![asks(&[("process_refund", long)])], |_| panic!("nobody is to be asked"));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let results = results(&world);
    assert!(results[0].contains("amount > 500 needs approval, and its arguments have 16"), "{results:?}");
    assert!(results[0].contains("more than the 16384 that a person is asked to approve (Approval)"), "{results:?}");
    // The same call without a hold is made.
    let long = json!({"order_id": "x".repeat(16 * 1024), "amount": 5});
    let free = ended(supervised(), vec![asks(&[("process_refund", long)])], ALL_WELL);
    assert_eq!(free.effects.len(), 1);
}

#[test]
fn a_worker_lost_at_any_event_of_an_approval_makes_the_call_once() {
    let answers = vec![asks(&[refunds(900), ("note", order())]), good_answer()];
    let whole = world(supervised(), answers, approves);
    assert_eq!((code(&whole), whole.effects.len()), (OutcomeCode::Succeeded, 2));
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        resumed.play_out();
        let sent_before = whole.names()[..cut].iter().filter(|name| **name == "tool.started").count();
        let in_flight = whole.names()[cut - 1] == "tool.started";
        let refund_in_flight = in_flight && sent_before == 1;
        let expected = if refund_in_flight { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!(code(&resumed), expected, "after {cut} events");
        let refunds = |world: &World| world.effects.iter().filter(|(tool, _)| tool == "process_refund").count();
        let before = usize::from(sent_before >= 1);
        assert_eq!(before + refunds(&resumed), 1, "after {cut} events");
        let decided = whole.names()[..cut].iter().filter(|name| **name == "tool.approved").count();
        let again = resumed.names()[cut..].iter().filter(|name| **name == "tool.approved").count();
        assert_eq!(decided + again, 2, "nobody decides twice: after {cut} events");
    }
}

#[test]
fn repeated_parking_at_a_held_call_does_not_end_the_job() {
    let mut world = World::new(supervised(), vec![asks(&[refunds(600)])], ALL_WELL);
    world.play_out();
    for _ in 0..30 {
        world = world.resumed_from(world.log.len());
        world.play_out();
        assert_eq!(world.conversation.outcome(), None);
    }
    world.people = approves;
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 1));
}

/// A decision about one of three calls, by any approver and for any digest, valid or not.
#[derive(Debug, Clone, Copy)]
struct AnyDecision {
    approves: bool,
    call: usize,
    digest: usize,
    approver: usize,
}

const APPROVERS: [&str; 4] = ["supervisor", "finance", "default", ""];

fn decision() -> impl Strategy<Value = AnyDecision> {
    // Denials are rare: a denial ends its call.
    (prop::bool::weighted(0.85), 0..3_usize, 0..3_usize, 0..4_usize)
        .prop_map(|(approves, call, digest, approver)| AnyDecision { approves, call, digest, approver })
}

fn event(decision: AnyDecision, calls: &[(CallId, Digest)]) -> Event {
    let (call, _) = &calls[decision.call];
    let (_, digest) = &calls[decision.digest];
    let (call, by) = (call.clone(), by_jane(APPROVERS[decision.approver], None));
    if decision.approves {
        Event::ToolApproved { call, digest: digest.clone(), decision: by }
    } else {
        Event::ToolDenied { call, decision: by }
    }
}

proptest! {
    /// No effect without an earlier durable Allow, and no Allow of a held call before each of its approvers has approved
    /// this call with these arguments (`docs/explanation/design.md`, invariant 1).
    #[test]
    fn no_order_of_decisions_lets_an_unapproved_call_run(decisions in prop::collection::vec(decision(), 0..24)) {
        let answer = asks(&[refunds(900), refunds(600)]);
        let mut world = World::new(supervised(), vec![answer], |_, _| Reply::Completed("ok"));
        world.play_out();
        let digests: Vec<(CallId, Digest)> = world.conversation.calls().iter().map(|call| {
            let Some(Arguments::Canonical(arguments)) = &call.arguments else { panic!("{call:?}") };
            (call.id.clone(), arguments.digest().clone())
        }).collect();
        let calls = [digests[0].clone(), digests[1].clone(), (CallId::new(99, 0), Digest::of_bytes(b"other"))];
        let needed: [&[&str]; 2] = [&["finance", "supervisor"], &["supervisor"]];
        let mut granted: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
        let mut denied = [false; 2];
        for decision in decisions {
            let waits = |at: usize| world.conversation.calls().iter()
                .any(|call| call.id == calls[at].0 && call.state == CallState::Held);
            if decision.call < 2 && waits(decision.call) && needed[decision.call].contains(&APPROVERS[decision.approver]) {
                let approver = APPROVERS[decision.approver];
                if !decision.approves {
                    denied[decision.call] = !granted[decision.call].contains(&approver);
                } else if decision.digest == decision.call && !granted[decision.call].contains(&approver) {
                    granted[decision.call].push(approver);
                }
            }
            world.record(event(decision, &calls));
            // Perform every step that the decision allows.
            while !matches!(next(&world.conversation), Step::AskPeople(_) | Step::Done(_)) {
                let events = world.log.len() + 1;
                world.play(events);
            }
            let done = |at: usize| granted[at].len() == needed[at].len() && !denied[at];
            let allowed = usize::from(done(0)) + usize::from(done(0) && done(1));
            prop_assert_eq!(world.effects.len(), allowed, "{:?} {:?}", granted, denied);
        }
        let unique: std::collections::BTreeSet<_> = world.effects.iter().map(|(_, key)| key).collect();
        prop_assert_eq!(unique.len(), world.effects.len());
        let mut replayed = Conversation::new(supervised());
        let mut chain = Chain::new("/test");
        for line in &world.log {
            replayed.apply(&chain.read(line).unwrap());
        }
        prop_assert_eq!(projected(&replayed), projected(&world.conversation));
        prop_assert_eq!(replayed.turns(), world.conversation.turns());
        prop_assert_eq!(next(&replayed), next(&world.conversation));
    }
}

/// An approval does not cover a rule that did not exist when the person approved.
#[rstest]
#[case::the_same_rules("amount > 500", 1)]
#[case::another_rule_of_the_same_approver("amount > 400", 0)]
fn an_approval_lifts_only_the_reasons_that_the_person_saw(#[case] when: &str, #[case] effects: usize) {
    let mut world = World::new(supervised(), vec![asks(&[refunds(600)])], ALL_WELL);
    world.people = approves;
    world.play_until(is_approved);
    let mut changed = supervised();
    changed.skill.policy.as_mut().unwrap().approvals[0].when = Some(when.into());
    let mut resumed = world.resumed_with(changed);
    resumed.people = |_| None;
    resumed.play_out();
    assert_eq!(resumed.effects.len(), effects, "{:?}", resumed.names());
}

#[test]
fn approvers_beyond_the_limit_of_the_status_are_asked_after_the_others_agreed() {
    let mut run = supervised();
    let rule = |n: u32| json!({"toolId": "process_refund", "action": "require_approval", "approver": format!("a{n}")});
    let rules: Vec<_> = (0..9).map(rule).collect();
    run.skill.policy.as_mut().unwrap().approvals = serde_json::from_value(json!(rules)).unwrap();
    let mut world = World::new(run, vec![asks(&[refunds(5)])], ALL_WELL);
    world.play_out();
    let waiting = |world: &World| projected(&world.conversation).waiting_for.unwrap().call.unwrap();
    let call = waiting(&world);
    assert_eq!(call.approvers.len(), 8);
    for approver in &call.approvers {
        let decision = by_jane(approver, None);
        let said = Statement::Approval { call: CallId(call.id.clone()), digest: call.digest.clone(), decision };
        assert!(world.conversation.is_relevant(&said));
        world.record(said.clone().into());
        assert!(!world.conversation.is_relevant(&said), "it was taken");
    }
    assert_eq!(waiting(&world).approvers, ["a8"]);
}

#[test]
fn calls_after_a_held_call_wait() {
    let both = asks(&[
        ("process_refund", json!({"order_id": "A-17", "amount": 900})),
        ("process_refund", json!({"order_id": "A-18", "amount": 5})),
    ]);
    let world = staged_world(cs_tier_1(), vec![looked_up(), both], &[]);
    assert_eq!(status(&world).phase, Phase::AwaitingApproval);
    assert_eq!(world.effects.len(), 0);
}

/// Somebody adds to the log that the answer of a completed call was lost.
#[test]
fn a_completed_idempotent_call_is_not_sent_again() {
    let mut world = World::new(supervised(), vec![asks(&[("note", order()), refunds(600)])], ALL_WELL);
    world.play_out();
    let call = world.conversation.calls()[0].id.clone();
    world.record(Event::ToolIndeterminate { call, text: "its answer was lost".into() });
    world.people = approves;
    world.play_out();
    let tools: Vec<&str> = world.effects.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!((code(&world), tools), (OutcomeCode::Succeeded, vec!["note", "process_refund"]));
}

/// Somebody replaces the list of tools before the first report.
#[test]
fn a_list_of_tools_that_makes_a_call_a_read_does_not_send_it_twice() {
    let mut world = World::new(supervised(), vec![asks(&[refunds(600)])], |tool, _| {
        if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") }
    });
    let Event::CatalogueFixed { mut tools } = fix_catalogue(&supervised(), world.listed.clone()) else { panic!() };
    for tool in &mut tools {
        (tool.read_only, tool.idempotent) = (true, true);
    }
    world.record(Event::CatalogueFixed { tools });
    world.people = approves;
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::ToolIndeterminate, 1));
}
