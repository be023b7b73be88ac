//! Limits in whole conversations.

use super::*;
use crate::event::{Decision, Event};
use crate::fixture::checks::{ALL_WELL, code};
use crate::fixture::{Reply, Tools, World, asks, good_answer, run};
use crate::people::HumanRequest;
use crate::run::Run;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Verdict;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Number, json};

/// Returns a Job with these limits.
fn limited(limits: Value) -> Run {
    let mut run = run();
    run.skill.policy.get_or_insert_default().limits = serde_json::from_value(limits).unwrap();
    run
}

/// Plays one answer for each amount: a refund of it.
fn refunds(run: Run, amounts: &[Value], reply: Tools) -> World {
    let call = |amount: &Value| asks(&[("process_refund", json!({"order_id": "A-17", "amount": amount}))]);
    let answers = amounts.iter().map(call).chain([good_answer()]).collect();
    let mut world = World::new(run, answers, reply);
    world.play_out();
    world
}

fn verdicts(world: &World) -> Vec<Verdict> {
    world.conversation.shared.calls.rulings().last.iter().map(|ruling| ruling.verdict).collect()
}

#[test]
fn split_amounts_are_added() {
    use Verdict::{Allow, Deny};
    let limits = json!([{"tool": "process_refund", "sum": "amount", "per": "job", "max": 1000, "action": "deny"}]);
    let world = refunds(limited(limits), &[json!(500), json!(499.99), json!(0.02), json!(0.01)], ALL_WELL);
    assert_eq!(verdicts(&world), [Allow, Allow, Deny, Allow]);
    assert_eq!(world.effects.len(), 3);
    let reason = world.conversation.shared.calls.rulings().last[2].reason.clone().unwrap();
    assert_eq!(reason, "amount in this Job: 999.99 before, 1000.01 with this call, at most 1000");
}

#[test]
fn calls_are_counted_over_all_tools_of_a_prefix() {
    let limits =
        json!([{"tool": "*", "count": true, "per": "job", "max": 2, "action": "deny", "reason": "Two are enough"}]);
    let calls = ["process_refund", "note", "verify_identity"].map(|tool| asks(&[(tool, json!({"order_id": "A-17"}))]));
    let mut world = World::new(limited(limits), calls.into_iter().chain([good_answer()]).collect(), ALL_WELL);
    world.play_out();
    assert_eq!(verdicts(&world), [Verdict::Allow, Verdict::Allow, Verdict::Deny], "a read counts too");
    let reason = world.conversation.shared.calls.rulings().last[2].reason.clone().unwrap();
    assert_eq!(reason, "Two are enough (calls in this Job: 2 before, 3 with this call, at most 2)");
    assert_eq!(code(&world), OutcomeCode::Succeeded, "no limit of the Job is reached");
}

#[test]
fn adjacent_reads_of_one_answer_are_counted_one_after_another() {
    let limits = json!([{"tool": "verify_*", "count": true, "per": "job", "max": 2, "action": "deny"}]);
    let read = |order: &str| ("verify_identity", json!({"order_id": order}));
    let mut world =
        World::new(limited(limits), vec![asks(&[read("A-1"), read("A-2"), read("A-3")]), good_answer()], ALL_WELL);
    world.play_out();
    assert_eq!(verdicts(&world), [Verdict::Allow, Verdict::Allow, Verdict::Deny]);
}

#[rstest]
#[case::missing(json!(null))]
#[case::negative(json!(-600))]
#[case::a_text(json!("600"))]
#[case::too_large(json!(1e300))]
fn a_call_without_a_valid_amount_is_held(#[case] amount: Value) {
    let limits = json!([{"tool": "process_*", "sum": "amount", "per": "job", "max": 1000, "approver": "finance"}]);
    let mut world = World::new(
        limited(limits),
        vec![asks(&[("process_refund", json!({"order_id": "A-17", "amount": amount}))])],
        ALL_WELL,
    );
    world.listed[2].input_schema = json!({"type": "object"});
    world.play_out();
    assert_eq!((world.conversation.shared.calls.rulings().held, world.effects.len()), (1, 0));
    let reason = world.conversation.shared.calls.rulings().last[0].reason.clone().unwrap();
    assert!(reason.starts_with("amount is limited in this Job, so it must be a number of at least 0"), "{reason}");
}

#[test]
fn only_a_failed_call_is_given_back() {
    let limits = json!([{"tool": "process_refund", "sum": "amount", "per": "job", "max": 1000, "action": "deny"}]);
    let amounts = [json!(600), json!(601)];
    let failed = refunds(limited(limits.clone()), &amounts, |_, times| {
        if times == 1 { Reply::Failed("no money") } else { Reply::Completed("ok") }
    });
    assert_eq!(verdicts(&failed), [Verdict::Allow, Verdict::Allow]);
    assert_eq!(verdicts(&refunds(limited(limits), &amounts, ALL_WELL)), [Verdict::Allow, Verdict::Deny]);
}

#[test]
fn a_lost_call_counts() {
    let limits = json!([{"tool": "process_refund", "sum": "amount", "per": "job", "max": 1000}]);
    let world = refunds(limited(limits), &[json!(600)], |_, _| Reply::Lost);
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
    let shared = &world.conversation.shared;
    assert_eq!(shared.spent.by_others(0, &CallId::new(0, 0)).to_string(), "600");
}

/// A Job and the events that its calls may have.
#[derive(Debug, Clone, Copy)]
enum Act {
    Start,
    Fail,
}

proptest! {
    /// Whatever amounts a model asks for, the effects that happen are within the limit, and each effect that is denied would have
    /// exceeded it.
    #[test]
    fn effects_never_exceed_a_limit(cents in prop::collection::vec(0_u32..60_000, 1..8)) {
        let limits = json!([{"tool": "process_refund", "sum": "amount", "per": "job", "max": 1000, "action": "deny"}]);
        let amounts: Vec<Value> = cents.iter().map(|cents| json!(f64::from(*cents) / 100.0)).collect();
        let world = refunds(limited(limits), &amounts, |_, times| {
            if times % 3 == 0 { Reply::Failed("not now") } else { Reply::Completed("ok") }
        });
        let (mut spent, mut effects) = (0, 0);
        for (verdict, cents) in verdicts(&world).into_iter().zip(&cents) {
            prop_assert_eq!(verdict == Verdict::Allow, spent + cents <= 100_000);
            effects += u32::from(verdict == Verdict::Allow);
            let has_happened = verdict == Verdict::Allow && effects % 3 != 0;
            spent += if has_happened { *cents } else { 0 };
        }
    }

    /// A fold of starts and failures in any order adds each call that has not failed once.
    #[test]
    fn spent_amounts_are_those_of_the_calls_that_did_not_fail(
        acts in prop::collection::vec((0_usize..6, prop::sample::select(vec![Act::Start, Act::Fail])), 0..40),
    ) {
        let mut spent = Spent::default();
        let mut counted = std::collections::BTreeSet::new();
        for (nth, act) in acts {
            let call = CallId::new(1, nth);
            match act {
                Act::Start => {
                    spent.count(&call, vec![(0, Amount::of_number(&Number::from(1_u64 << nth)).unwrap())]);
                    counted.insert(nth);
                }
                Act::Fail => {
                    spent.give_back(&call);
                    counted.remove(&nth);
                }
            }
        }
        let expected: u64 = counted.iter().map(|nth| 1 << nth).sum();
        prop_assert_eq!(spent.by_others(0, &CallId::new(2, 0)), Amount::of_number(&expected.into()).unwrap());
    }
}

#[test]
fn a_call_that_is_sent_again_counts_once_and_a_replay_counts_the_same() {
    let limits = json!([{"tool": "note", "sum": "amount", "per": "job", "max": 1000, "action": "deny"}]);
    let call = asks(&[("note", json!({"order_id": "A-17", "amount": 600}))]);
    let lose_once: Tools = |_, times| if times == 1 { Reply::Lost } else { Reply::Completed("ok") };
    let mut world = World::new(limited(limits), vec![call, good_answer()], lose_once);
    world.play_out();
    let starts = world.names().into_iter().filter(|name| *name == "tool.started").count();
    assert_eq!((starts, code(&world)), (2, OutcomeCode::Succeeded), "the second start is no second call");
    let replayed = world.resumed_from(world.log.len());
    assert_eq!(replayed.conversation.shared.spent, world.conversation.shared.spent);
}

#[test]
fn a_held_call_is_asked_about_once_and_counts_when_it_is_approved() {
    use Verdict::{Allow, Hold};
    let limits = json!([{"tool": "process_refund", "sum": "amount", "per": "job", "max": 1000, "approver": "finance"}]);
    let mut world = World::new(
        limited(limits),
        [600, 500, 1].map(|amount| asks(&[("process_refund", json!({"order_id": "A-17", "amount": amount}))])).into(),
        ALL_WELL,
    );
    world.people = |open| {
        open.iter().find_map(|request| match request {
            HumanRequest::Approval(request) if request.arguments.contains("500") => {
                let [approver] = request.approvers.as_slice() else { panic!("{:?}", request.approvers) };
                let decision = Decision { approver: (*approver).to_owned(), by: "jane".into(), reason: None };
                Some(request.approve(decision))
            }
            _ => None,
        })
    };
    world.play_out();
    assert_eq!(verdicts(&world), [Allow, Hold, Allow, Hold]);
    let rulings = &world.conversation.shared.calls.rulings().last;
    let reason = "amount in this Job: 1100 before, 1101 with this call, at most 1000";
    assert_eq!(rulings[3].reason.as_deref(), Some(reason));
}

#[test]
fn an_approval_lifts_a_limit_whose_amounts_have_changed_and_no_other_limit() {
    let reason =
        |detail: &str, rule: &str| Objection::hold(GateReason::Approval, detail, Some("x")).of_rule(rule.into()).reason;
    let held = reason("5 before", "policy.limits[0]");
    assert!(held.is_same_rule(&reason("6 before", "policy.limits[0]")));
    assert!(!held.is_same_rule(&reason("5 before", "policy.limits[1]")));
    let approval = |detail: &str| Objection::hold(GateReason::Approval, detail, Some("x")).reason;
    assert!(!approval("a").is_same_rule(&approval("b")));
}

/// Returns a Job with a limit of 1000 in 24 h over all Jobs of the Skill.
fn windowed(action: &str, key: &str) -> Run {
    let limits = json!([{
        "tool": "process_refund", "sum": "amount", "per": "skill", "window": "24h", "max": 1000, "action": action,
    }]);
    Run { run_key: key.into(), ..limited(limits) }
}

/// Plays a Job that asks for one refund, with the ledger of earlier Jobs.
fn refund_after(earlier: &World, run: Run, amount: u64, reply: Tools) -> World {
    let call = asks(&[("process_refund", json!({"order_id": "A-17", "amount": amount}))]);
    let mut world = World::new(run, vec![call, good_answer()], reply);
    (world.ledger, world.now) = (earlier.ledger.clone(), earlier.now);
    world.play_out();
    world
}

#[test]
fn jobs_of_a_skill_share_a_limit_with_a_window() {
    let first = refunds(windowed("deny", "job-1"), &[json!(600)], ALL_WELL);
    let names = first.names();
    let place = |name: &str| names.iter().position(|event| *event == name).unwrap();
    assert!(place("limits.reserved") < place("tool.ruled") && place("tool.ruled") < place("tool.started"));

    let second = refund_after(&first, windowed("deny", "job-2"), 401, ALL_WELL);
    assert_eq!((verdicts(&second), second.effects.len()), (vec![Verdict::Deny], 0));
    let reason = second.conversation.shared.calls.rulings().last[0].reason.clone().unwrap();
    assert_eq!(reason, "amount in 24 h: 600 before, 1001 with this call, at most 1000");
    assert_eq!(second.ledger, first.ledger, "a denied call does not count");

    let third = refund_after(&second, windowed("deny", "job-3"), 400, ALL_WELL);
    assert_eq!(verdicts(&third), [Verdict::Allow]);
    let mut later = third.resumed_from(third.log.len());
    later.now = 24 * 3600;
    assert_eq!(verdicts(&refund_after(&later, windowed("deny", "job-4"), 1000, ALL_WELL)), [Verdict::Allow]);
}

#[test]
fn only_a_failed_call_is_returned_to_the_ledger() {
    let empty = refunds(windowed("deny", "job-0"), &[], ALL_WELL);
    let failed = refund_after(&empty, windowed("deny", "job-1"), 600, |_, _| Reply::Failed("no money"));
    assert!(failed.names().contains(&"limits.returned"));
    assert_eq!(failed.ledger.as_ref().unwrap().entries, []);
    let lost = refund_after(&failed, windowed("deny", "job-2"), 600, |_, _| Reply::Lost);
    assert_eq!(lost.ledger.as_ref().unwrap().entries.len(), 1);
    assert_eq!(code(&lost), OutcomeCode::ToolIndeterminate);
}

#[test]
fn an_approved_call_counts_in_the_ledger_beyond_the_limit() {
    let first = refunds(windowed("require_approval", "job-1"), &[json!(900)], ALL_WELL);
    let mut second = refund_after(&first, windowed("require_approval", "job-2"), 500, ALL_WELL);
    assert_eq!((verdicts(&second), second.effects.len()), (vec![Verdict::Hold], 0));
    assert_eq!(second.ledger, first.ledger, "a held call does not count yet");
    // Another Job spends meanwhile, so the amounts of the second ruling are others.
    let other = refund_after(&second, windowed("require_approval", "job-3"), 100, ALL_WELL);
    second.ledger = other.ledger.clone();
    let mut approved = second.resumed_from(second.log.len());
    approved.people = approves;
    approved.play_out();
    assert_eq!((verdicts(&approved), approved.effects.len()), (vec![Verdict::Hold, Verdict::Allow], 1));
    assert_eq!(approved.ledger.as_ref().unwrap().entries.len(), 3);
}

/// The ledger is asked after people have agreed to the rest.
#[test]
fn the_approver_of_another_rule_decides_about_a_limit_that_names_none() {
    let first = refunds(windowed("require_approval", "job-1"), &[json!(900)], ALL_WELL);
    let mut run = windowed("require_approval", "job-2");
    run.skill.policy.as_mut().unwrap().approvals =
        serde_json::from_value(json!([{"toolId": "process_refund", "approver": "supervisor"}])).unwrap();
    let call = asks(&[("process_refund", json!({"order_id": "A-17", "amount": 500}))]);
    let mut world = World::new(run, vec![call, good_answer()], ALL_WELL);
    (world.ledger, world.now) = (first.ledger.clone(), first.now);
    world.people = |open| {
        let HumanRequest::Approval(request) = open.first()? else { return None };
        assert_eq!(request.approvers, ["supervisor"]);
        approves(open)
    };
    world.play_out();
    assert_eq!(verdicts(&world), [Verdict::Hold, Verdict::Hold, Verdict::Allow]);
    assert_eq!(world.effects.len(), 1);
}

#[test]
fn a_denied_approval_is_not_counted() {
    let first = refunds(windowed("require_approval", "job-1"), &[json!(900)], ALL_WELL);
    let second = refund_after(&first, windowed("require_approval", "job-2"), 500, ALL_WELL);
    let mut denied = second.resumed_from(second.log.len());
    denied.people = |open| {
        let HumanRequest::Approval(request) = open.first()? else { return None };
        Some(request.deny(Decision { approver: request.approvers[0].into(), by: "jane".into(), reason: None }))
    };
    denied.play_out();
    assert_eq!((denied.effects.len(), &denied.ledger), (0, &first.ledger));
}

#[test]
fn a_ledger_that_cannot_be_used_holds_a_call_until_people_decide() {
    let mut broken = refunds(windowed("require_approval", "job-0"), &[], ALL_WELL);
    broken.ledger = Err("it cannot be read");
    let held = refund_after(&broken, windowed("require_approval", "job-1"), 1, ALL_WELL);
    assert_eq!((verdicts(&held), held.effects.len()), (vec![Verdict::Hold], 0));
    let reason = held.conversation.shared.calls.rulings().last[0].reason.clone().unwrap();
    assert_eq!(reason, "amount in 24 h cannot be checked, because of the ledger of the Skill: it cannot be read");
    let mut approved = held.resumed_from(held.log.len());
    approved.people = approves;
    approved.play_out();
    assert_eq!((code(&approved), approved.effects.len()), (OutcomeCode::Succeeded, 1));
    let denied = refund_after(&broken, windowed("deny", "job-2"), 1, ALL_WELL);
    assert_eq!((verdicts(&denied), denied.effects.len()), (vec![Verdict::Deny], 0));
}

fn approves(open: &[HumanRequest<'_>]) -> Option<crate::people::Statement> {
    let HumanRequest::Approval(request) = open.first()? else { return None };
    Some(request.approve(Decision { approver: request.approvers[0].into(), by: "jane".into(), reason: None }))
}

/// The log alone starts no call: a worker asks the ledger, whatever an earlier line says.
#[test]
fn an_allowed_call_without_a_reservation_is_not_sent() {
    let call = asks(&[("process_refund", json!({"order_id": "A-17", "amount": 600}))]);
    let mut world = World::new(windowed("deny", "job-1"), vec![call, good_answer()], ALL_WELL);
    world.play_until(|conversation| conversation.calls().iter().any(|call| call.arguments.is_some()));
    let id = world.conversation.calls()[0].id.clone();
    world.record(Event::ToolRuled { call: id, verdict: Verdict::Allow, reasons: Vec::new() });
    world.play_out();
    assert_eq!(world.ledger.as_ref().unwrap().entries.len(), 1);
    let names = world.names();
    let place = |name: &str| names.iter().position(|event| *event == name).unwrap();
    assert!(place("limits.reserved") < place("tool.started"), "{names:?}");
}

/// A worker may be lost after any event. The next one reserves the call again, and it counts once.
#[test]
fn a_call_counts_once_in_the_ledger_wherever_its_worker_is_lost() {
    let whole = refunds(windowed("deny", "job-1"), &[json!(600)], ALL_WELL);
    for events in 1..whole.log.len() {
        let mut resumed = whole.resumed_from(events);
        resumed.play_out();
        let entries = resumed.ledger.as_ref().unwrap().entries.len();
        assert_eq!(entries, 1, "after event {events}: {:?}", resumed.names());
    }
}

#[test]
fn a_replay_of_reservations_reads_no_ledger() {
    let world = refunds(windowed("deny", "job-1"), &[json!(600), json!(500)], ALL_WELL);
    assert_eq!(verdicts(&world), [Verdict::Allow, Verdict::Deny]);
    let mut other = world.resumed_from(world.log.len());
    other.ledger = Err("no ledger is read");
    other.play_out();
    assert_eq!(verdicts(&other), verdicts(&world));
}
