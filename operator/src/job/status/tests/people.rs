//! Whether and which people are waited for.

use super::*;

fn awaiting_people(status: &JobStatus) -> Option<(&str, &str)> {
    let told = conditions::find(&status.conditions, ConditionType::AwaitingPeople)?;
    Some((told.status.as_str(), told.reason.as_str()))
}

fn ends(code: OutcomeCode, not_started: Option<HeldCall>) -> AppliedPlan {
    AppliedPlan::Ended(JobEnd { outcome: Outcome::new(code, "it is over"), read_from: None }, not_started)
}

/// Both approvers of the held call, or the second alone.
fn awaited(of: &[&str]) -> PeopleWait {
    let both = [("supervisor", "refund-a"), ("finance", "refund-b")];
    let named = both.into_iter().filter(|(approver, _)| of.contains(approver));
    PeopleWait::Approvers(
        named
            .map(|(approver, approval)| PendingDecision { approver: approver.into(), approval: approval.into() })
            .collect(),
    )
}

#[test]
fn a_wait_that_is_over_is_told_until_the_next_one_and_never_of_a_job_that_had_none() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    assert_eq!(awaiting_people(&begun), None);
    assert_eq!(awaiting_people(&next(&begun, &ends(OutcomeCode::Stuck, None), &stamp(3))), None);

    let waits = held();
    assert_eq!(awaiting_people(&waits), Some(("True", "AwaitingApproval")));
    let ended = next(&waits, &ends(OutcomeCode::Cancelled, None), &stamp(50));
    assert_eq!(awaiting_people(&ended), Some(("False", "Ended")));
    let resumed = next(&waits, &AppliedPlan::Started(started(2), None), &stamp(50));
    assert_eq!(awaiting_people(&resumed), Some(("False", "Resumed")));
    let told = conditions::find(&resumed.conditions, ConditionType::AwaitingPeople).unwrap();
    assert_eq!(told.last_transition_time, Time(at(50)));
    assert_eq!(next(&resumed, &AppliedPlan::Observed(None), &stamp(60)), resumed, "it costs no write of its own");
    let over = next(&resumed, &ends(OutcomeCode::Stuck, None), &stamp(90));
    assert_eq!(awaiting_people(&over), Some(("False", "Resumed")), "it was not waiting when it ended");
    let told = message(2, PodEnd::Parked(ParkReason::Reply), None);
    let again = next(&resumed, &AppliedPlan::Parked(Box::new(told)), &stamp(90));
    assert_eq!(awaiting_people(&again), Some(("True", "AwaitingReply")));
}

#[test]
fn people_who_are_asked_no_more_are_not_waited_for() {
    let unasked = next(&held(), &AppliedPlan::WaitsForPeople(PeopleWait::PolicyMissing("gone".into())), &stamp(50));
    assert_eq!(awaiting_people(&unasked), Some(("False", "ApprovalPolicyMissing")));
    let asked = next(&unasked, &AppliedPlan::WaitsForPeople(awaited(&["finance"])), &stamp(60));
    assert_eq!(awaiting_people(&asked), Some(("True", "AwaitingApproval")));
    assert_eq!(asked.waiting_for.unwrap().approvals, ["refund-b"]);
}

#[test]
fn only_those_are_named_who_have_still_to_decide() {
    let both = held();
    assert_eq!(next(&both, &AppliedPlan::WaitsForPeople(awaited(&["supervisor", "finance"])), &stamp(50)), both);
    let one = next(&both, &AppliedPlan::WaitsForPeople(awaited(&["finance"])), &stamp(50));
    let waiting = one.waiting_for.as_ref().unwrap();
    assert_eq!((waiting.approvals.as_slice(), &waiting.call), (&["refund-b".to_owned()][..], &Some(held_call())));
    let said = &conditions::find(&one.conditions, ConditionType::Ready).unwrap().message;
    assert!(said.contains("waits for finance: they decide in spec.decision of the Approval refund-b;"), "{said}");
    assert!(!said.contains("supervisor") && !only_message_changed(&both, &one));
    assert_eq!(next(&one, &AppliedPlan::WaitsForPeople(awaited(&["finance"])), &stamp(90)), one, "it is written once");
}

#[test]
fn a_call_that_was_not_begun_before_the_end_is_told() {
    let ended = next(&held(), &ends(OutcomeCode::Cancelled, Some(held_call())), &stamp(50));
    let told = conditions::find(&ended.conditions, ConditionType::AwaitingPeople).unwrap();
    assert_eq!(told.message, "the Job ended before the call c-7 of process_refund was begun: it is not made");
    assert_eq!(CallNotStarted::recorded(&ended), Some(CallNotStarted::from(&held_call())));
    assert_eq!(awaiting_people(&ended), Some(("False", "NotBegun")));
}
