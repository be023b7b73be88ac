use super::*;
use crate::job::fixtures::{UID, approval, at, counted, decided, held_call, policy_in_force};
use rstest::rstest;

fn call_approvals(approvals: [Option<Approval>; 2], policy: PolicyState) -> CallApprovals {
    let call = held_call();
    let names = crate::approval::approval_names("refund", UID, &call);
    CallApprovals { approvals: names.into_iter().zip(approvals).collect(), call, policy }
}

fn missing() -> PolicyState {
    PolicyState::Missing("gone".into())
}

/// The state of an admission policy that was installed after the Approvals were created.
fn other_policy() -> PolicyState {
    crate::approval::policy::in_force(&crate::job::fixtures::api::shipped_policies(), "another", "another")
}

/// A short description of a state.
fn summary(state: ApprovalState) -> String {
    match state {
        ApprovalState::NeedsUpdate(updates) => {
            let words = updates.iter().map(|update| match update {
                ApprovalUpdate::Count(_) => "count",
                ApprovalUpdate::Void { .. } => "void",
                ApprovalUpdate::Withdraw { .. } => "withdraw",
                ApprovalUpdate::CallNotStarted { .. } => "call not started",
            });
            words.collect::<Vec<_>>().join(" ")
        }
        ApprovalState::Decided => "decided".into(),
        ApprovalState::PolicyMissing(why) => format!("policy missing: {why}"),
        ApprovalState::Missing => "missing".into(),
        ApprovalState::Pending(_, pending) => {
            let approvers: Vec<&str> = pending.iter().map(|decision| decision.approver.as_str()).collect();
            format!("pending: {}", approvers.join(" "))
        }
        ApprovalState::NoApprover => "no approver".into(),
    }
}

fn supervisor() -> Approval {
    approval("supervisor")
}

fn finance() -> Approval {
    approval("finance")
}

fn edited(change: impl FnOnce(&mut ApprovalSpec)) -> Approval {
    let mut edited = decided(supervisor(), YES);
    change(&mut edited.spec);
    edited
}

/// An Approval whose status records a decision that the spec does not have.
fn forged(approval: Approval) -> Approval {
    let mut forged = counted(approval, YES);
    forged.spec.decision = None;
    forged
}

/// An Approval whose status records another decision than its spec.
fn forged_as(approval: Approval, decided: ApprovalVerdict, status: ApprovalVerdict) -> Approval {
    let mut forged = counted(approval, status);
    forged.spec.decision.as_mut().unwrap().verdict = decided;
    forged
}

/// An Approval that expired before its time.
fn withdrawn(approval: Approval) -> Approval {
    counted(approval, LATE)
}

const YES: ApprovalVerdict = ApprovalVerdict::Approve;
const NO: ApprovalVerdict = ApprovalVerdict::Deny;
const LATE: ApprovalVerdict = ApprovalVerdict::Expired;
/// The expiry of the fixtures' Approvals, in seconds.
const EXPIRY_SECONDS: i64 = 24 * 3600;

#[rstest]
#[case::open(Some(supervisor()), Some(finance()), policy_in_force(), 1, "pending: supervisor finance")]
#[case::one_does_not_exist(Some(supervisor()), None, policy_in_force(), 1, "missing")]
#[case::none_exists(None, None, policy_in_force(), 1, "missing")]
#[case::one_decided(Some(decided(supervisor(), YES)), Some(finance()), policy_in_force(), 1, "count")]
#[case::one_counts(Some(counted(supervisor(), YES)), Some(finance()), policy_in_force(), 1, "pending: finance")]
#[case::the_other_counts(
    Some(supervisor()),
    Some(counted(finance(), YES)),
    policy_in_force(),
    1,
    "pending: supervisor"
)]
#[case::both_count(Some(counted(supervisor(), YES)), Some(counted(finance(), YES)), policy_in_force(), 1, "decided")]
#[case::one_denial_is_enough(Some(supervisor()), Some(counted(finance(), NO)), policy_in_force(), 1, "withdraw")]
#[case::one_denial_and_the_other_withdrawn(
    Some(withdrawn(supervisor())),
    Some(counted(finance(), NO)),
    policy_in_force(),
    1,
    "decided"
)]
#[case::one_denial_and_the_other_gone(None, Some(counted(finance(), NO)), policy_in_force(), 1, "decided")]
#[case::one_denial_and_a_late_approval(
    Some(decided(supervisor(), YES)),
    Some(counted(finance(), NO)),
    policy_in_force(),
    1,
    "count"
)]
#[case::one_denial_without_policy(Some(supervisor()), Some(counted(finance(), NO)), missing(), 1, "withdraw")]
#[case::one_expired(Some(counted(supervisor(), YES)), Some(counted(finance(), LATE)), policy_in_force(), 1, "decided")]
#[case::just_in_time(Some(supervisor()), Some(finance()), policy_in_force(), EXPIRY_SECONDS - 1, "pending: supervisor finance")]
#[case::time_is_up(Some(supervisor()), Some(counted(finance(), YES)), policy_in_force(), EXPIRY_SECONDS, "count")]
#[case::counted_and_nobody_decided(Some(forged(supervisor())), Some(finance()), policy_in_force(), 1, "void")]
#[case::counted_and_another_decision(
    Some(forged_as(supervisor(), LATE, YES)),
    Some(counted(finance(), YES)),
    policy_in_force(),
    1,
    "void"
)]
#[case::counted_against_a_denial(
    Some(forged_as(supervisor(), NO, YES)),
    Some(counted(finance(), YES)),
    policy_in_force(),
    1,
    "void"
)]
#[case::counted_decisions_do_not_expire(
    Some(counted(supervisor(), YES)),
    Some(counted(finance(), YES)),
    policy_in_force(),
    EXPIRY_SECONDS,
    "decided"
)]
#[case::without_policy(Some(supervisor()), Some(finance()), missing(), 1, "policy missing: gone")]
#[case::without_policy_and_not_asked(None, None, missing(), 1, "policy missing: gone")]
#[case::decided_without_policy(Some(decided(supervisor(), YES)), Some(finance()), missing(), 1, "void")]
#[case::denied_without_policy(Some(decided(supervisor(), NO)), Some(finance()), missing(), 1, "void")]
#[case::counted_and_without_policy(
    Some(counted(supervisor(), YES)),
    Some(counted(finance(), YES)),
    missing(),
    1,
    "policy missing: gone"
)]
#[case::under_another_policy(Some(supervisor()), Some(finance()), other_policy(), 1, "void void")]
#[case::decided_under_another_policy(Some(decided(supervisor(), YES)), None, other_policy(), 1, "void")]
#[case::counted_under_another_policy(Some(counted(supervisor(), YES)), None, other_policy(), 1, "void")]
#[case::without_a_policy_digest(Some(edited(|spec| spec.guard = None)), None, policy_in_force(), 1, "void")]
#[case::of_another_job(Some(edited(|spec| spec.job_uid = "another".into())), Some(finance()), policy_in_force(), 1, "void")]
#[case::of_another_call(Some(edited(|spec| spec.call_id = "c-8".into())), Some(finance()), policy_in_force(), 1, "void")]
#[case::of_another_tool(Some(edited(|spec| spec.tool = "track_order".into())), Some(finance()), policy_in_force(), 1, "void")]
#[case::of_another_approver(Some(edited(|spec| spec.approver = "me".into())), Some(finance()), policy_in_force(), 1, "void")]
#[case::of_other_arguments(
    Some(edited(|spec| spec.arguments_digest = bloomery_crds::Digest::of_bytes(b"other"))),
    Some(finance()), policy_in_force(), 1, "void"
)]
fn the_state_of_a_call_follows_from_its_approvals(
    #[case] supervisor: Option<Approval>,
    #[case] finance: Option<Approval>,
    #[case] policy: PolicyState,
    #[case] now: i64,
    #[case] expected: &str,
) {
    assert_eq!(summary(evaluate("refund", UID, &call_approvals([supervisor, finance], policy), at(now))), expected);
}

#[test]
fn a_call_without_approvers_is_never_decided() {
    let mut without_approvers = call_approvals([None, None], policy_in_force());
    without_approvers.call.approvers.clear();
    without_approvers.approvals.clear();
    assert_eq!(evaluate("refund", UID, &without_approvers, at(1)), ApprovalState::NoApprover);
}

#[test]
fn a_decision_counts_if_it_is_seen_before_the_expiry() {
    let spec = decided(supervisor(), YES).spec;
    assert_eq!(verdict_at(&spec, at(EXPIRY_SECONDS - 1)), YES);
    assert_eq!(verdict_at(&spec, at(EXPIRY_SECONDS)), LATE);
    assert_eq!(verdict_at(&supervisor().spec, at(EXPIRY_SECONDS)), LATE);
}

#[test]
fn a_withdrawn_approval_differs_from_an_expired_one() {
    let withdrawn = withdrawn(supervisor());
    assert!(is_withdrawn(&withdrawn) && !is_open(&withdrawn));
    let mut expired = withdrawn.clone();
    expired.spec.expires_at.0 = at(1);
    assert!(!is_withdrawn(&expired));
    assert!(!is_withdrawn(&counted(supervisor(), NO)) && !is_withdrawn(&supervisor()));
    assert_eq!(withdrawal(&counted(supervisor(), NO), "over"), None);
    for approval in [supervisor(), decided(supervisor(), YES)] {
        assert!(withdrawal(&approval, "over").is_some(), "its decision has not counted");
    }
}

#[rstest]
#[case::held_and_decided(Some(("7-1", vec!["supervisor", "finance"])), true, &["7-0 supervisor", "7-1 supervisor", "7-1 finance"])]
#[case::held_and_not_decided(Some(("7-1", vec!["supervisor", "finance"])), false, &["7-0 supervisor"])]
// The log has the decision of an approver who is not asked any more.
#[case::held_by_the_second_approver(Some(("7-1", vec!["finance"])), false, &["7-0 supervisor", "7-1 supervisor"])]
#[case::made_or_lost(None, false, &["7-0 supervisor", "7-1 supervisor", "7-1 finance"])]
#[case::another_call_is_held_and_nobody_was_asked(
    Some(("12-0", vec!["supervisor"])), false, &["7-0 supervisor", "7-1 supervisor", "7-1 finance"]
)]
fn a_worker_needs_the_decisions_on_the_calls_of_the_latest_answer(
    #[case] held: Option<(&str, Vec<&str>)>,
    #[case] is_decided: bool,
    #[case] expected: &[&str],
) {
    let of_call = |call: &str, approver: &str| {
        let mut approval = counted(approval(approver), YES);
        approval.spec.call_id = call.to_owned();
        approval.metadata.name = Some(format!("{call} {approver}"));
        approval
    };
    let mut open = approval("finance");
    open.spec.call_id = "99-0".into();
    let approvals = [
        of_call("7-0", "supervisor"),
        of_call("7-1", "supervisor"),
        of_call("7-1", "finance"),
        of_call("5-12", "supervisor"),
        open,
    ];
    let held = held.map(|(id, approvers)| HeldCall {
        id: id.to_owned(),
        approvers: approvers.into_iter().map(str::to_owned).collect(),
        ..held_call()
    });
    assert_eq!(needed_decisions(held.as_ref(), is_decided, approvals.iter()), expected);
}
