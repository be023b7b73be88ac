//! Tests of the condition `AwaitingPeople` and of the approvers in the status.

use super::*;

fn awaiting_people(status: &JobStatus) -> Option<(&str, &str)> {
    let condition = conditions::find(&status.conditions, ConditionType::AwaitingPeople)?;
    Some((condition.status.as_str(), condition.reason.as_str()))
}

fn end_plan(code: OutcomeCode, not_started: Option<HeldCall>) -> AppliedPlan {
    AppliedPlan::Ended(JobEnd { outcome: Outcome::new(code, "it is over"), read_from: None }, not_started)
}

/// The wait for these approvers of the held call.
fn wait_for(approvers: &[&str]) -> PeopleWait {
    let both = [("supervisor", "refund-a"), ("finance", "refund-b")];
    let named = both.into_iter().filter(|(approver, _)| approvers.contains(approver));
    PeopleWait::Approvers(
        named
            .map(|(approver, approval)| PendingDecision { approver: approver.into(), approval: approval.into() })
            .collect(),
    )
}

#[test]
fn the_condition_of_a_finished_wait_stays_until_the_next_wait() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    assert_eq!(awaiting_people(&begun), None);
    assert_eq!(awaiting_people(&next(&begun, &end_plan(OutcomeCode::Stuck, None), &stamp(3))), None);

    let waits = held();
    assert_eq!(awaiting_people(&waits), Some(("True", "AwaitingApproval")));
    let ended = next(&waits, &end_plan(OutcomeCode::Cancelled, None), &stamp(50));
    assert_eq!(awaiting_people(&ended), Some(("False", "Ended")));
    let resumed = next(&waits, &AppliedPlan::Started(started(2), None), &stamp(50));
    assert_eq!(awaiting_people(&resumed), Some(("False", "Resumed")));
    let condition = conditions::find(&resumed.conditions, ConditionType::AwaitingPeople).unwrap();
    assert_eq!(condition.last_transition_time, Time(at(50)));
    assert_eq!(
        next(&resumed, &AppliedPlan::Observed(None), &stamp(60)),
        resumed,
        "the condition does not change again"
    );
    let over = next(&resumed, &end_plan(OutcomeCode::Stuck, None), &stamp(90));
    assert_eq!(awaiting_people(&over), Some(("False", "Resumed")), "the Job did not wait when it ended");
    let termination = message(2, PodEnd::Parked(ParkReason::Reply), None);
    let again = next(&resumed, &AppliedPlan::Parked(Box::new(termination)), &stamp(90));
    assert_eq!(awaiting_people(&again), Some(("True", "AwaitingReply")));
}

#[test]
fn without_the_admission_policy_the_job_does_not_wait_for_people() {
    let unasked = next(&held(), &AppliedPlan::WaitsForPeople(PeopleWait::PolicyMissing("gone".into())), &stamp(50));
    assert_eq!(awaiting_people(&unasked), Some(("False", "ApprovalPolicyMissing")));
    let asked = next(&unasked, &AppliedPlan::WaitsForPeople(wait_for(&["finance"])), &stamp(60));
    assert_eq!(awaiting_people(&asked), Some(("True", "AwaitingApproval")));
    assert_eq!(asked.waiting_for.unwrap().approvals, ["refund-b"]);
}

#[test]
fn only_approvers_who_have_not_decided_are_named() {
    let both = held();
    assert_eq!(next(&both, &AppliedPlan::WaitsForPeople(wait_for(&["supervisor", "finance"])), &stamp(50)), both);
    let one = next(&both, &AppliedPlan::WaitsForPeople(wait_for(&["finance"])), &stamp(50));
    let waiting = one.waiting_for.as_ref().unwrap();
    assert_eq!((waiting.approvals.as_slice(), &waiting.call), (&["refund-b".to_owned()][..], &Some(held_call())));
    let message = &conditions::find(&one.conditions, ConditionType::Ready).unwrap().message;
    assert!(message.contains("waits for finance: they decide in spec.decision of the Approval refund-b;"), "{message}");
    assert!(!message.contains("supervisor") && !is_same_wait(&both, &one));
    assert_eq!(
        next(&one, &AppliedPlan::WaitsForPeople(wait_for(&["finance"])), &stamp(90)),
        one,
        "the status is written once"
    );
}

#[test]
fn a_call_that_was_not_started_before_the_end_is_recorded() {
    let ended = next(&held(), &end_plan(OutcomeCode::Cancelled, Some(held_call())), &stamp(50));
    let condition = conditions::find(&ended.conditions, ConditionType::AwaitingPeople).unwrap();
    assert_eq!(condition.message, "the Job ended before the call c-7 of process_refund was begun: it is not made");
    assert_eq!(ended.call_not_started, Some(call_not_started::record(&held_call())));
    assert_eq!(awaiting_people(&ended), Some(("False", "NotBegun")));
}
