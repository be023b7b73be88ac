//! Tests of the decision for a Job that waits for the answer to a question.

use super::*;
use crate::job::fixtures::{asked, policy_in_force};
use bloomery_crds::v1alpha1::WaitingFor;

const DAY_SECONDS: i64 = 24 * 3600;

/// The plan for a Job that has waited for a reply since second 0, and may wait for a day.
fn plan(phase: Phase, pods: &[Pod], answered: bool, now: i64) -> Plan {
    let mut status = status(1, phase);
    let call = (phase == Phase::AwaitingApproval).then(held_call);
    status.waiting_for = Some(WaitingFor { call, ..asked(0) }.into());
    let pods = read(now, &status, pods);
    let call = held_call();
    let approvals = [Some(approval("supervisor")), Some(approval("finance"))];
    let names = crate::approval::approval_names("refund", UID, &call);
    let call_approvals =
        CallApprovals { approvals: names.into_iter().zip(approvals).collect(), call, policy: policy_in_force() };
    decide(&Facts {
        call_approvals: (phase == Phase::AwaitingApproval).then_some(&call_approvals),
        answers: if answered { AnswerState::Available } else { AnswerState::Awaited },
        reply_expiry: Some(SignedDuration::from_secs(DAY_SECONDS)),
        ..facts(now, &status, &pods)
    })
}

#[test]
fn a_job_waits_for_a_reply_until_the_expiry() {
    let plan_at = |now| plan(Phase::AwaitingReply, &[], false, now);
    let left = Some(SignedDuration::from_secs(DAY_SECONDS - 60));
    assert_eq!((plan_at(60).act, plan_at(60).requeue_after), (Act::WaitForPeople(PeopleWait::AsRecorded), left));
    let Act::End(end) = plan_at(DAY_SECONDS).act else { panic!("{:?}", plan_at(DAY_SECONDS).act) };
    assert_eq!((end.outcome.code, end.outcome.phase()), (OutcomeCode::UserNeeded, Phase::Escalated));
    let message = &end.outcome.message;
    assert!(
        message.starts_with("nobody answered q-1 (\"Which order?\"), q-2 (\"Which shop?\") within 24h"),
        "{message}"
    );
    assert_eq!(end.read_from, None);
}

#[test]
fn a_clock_that_was_set_back_does_not_end_the_wait() {
    let back = plan(Phase::AwaitingReply, &[], false, -3600);
    assert_eq!(
        (back.act, back.requeue_after),
        (Act::WaitForPeople(PeopleWait::AsRecorded), Some(SignedDuration::from_secs(DAY_SECONDS + 3600)))
    );
    assert_eq!(plan(Phase::AwaitingReply, &[], true, -3600).act, start(2));
}

#[test]
fn a_wait_without_a_readable_skill_does_not_expire() {
    let mut status = status(1, Phase::AwaitingReply);
    status.waiting_for = Some(asked(0).into());
    let decision = decide_at(1000 * DAY_SECONDS, &status, &[], false);
    assert_eq!((decision.act, decision.requeue_after), (Act::WaitForPeople(PeopleWait::AsRecorded), None));
}

#[test]
fn an_answer_starts_the_next_attempt_once_the_pod_has_ended() {
    for now in [60, 2 * DAY_SECONDS] {
        assert_eq!(
            plan(Phase::AwaitingReply, &[], true, now).act,
            start(2),
            "an answer counts, however late it is seen"
        );
    }
    assert_eq!(plan(Phase::AwaitingReply, &[ended_pod(1, 10, Some(parked_for_reply()))], true, 60).act, start(2));
    assert_eq!(plan(Phase::AwaitingReply, &[pod(1, "Running")], true, 60).act, Act::Observe(None));
}

#[test]
fn an_answer_starts_the_next_attempt_even_if_a_call_is_held() {
    assert_eq!(plan(Phase::AwaitingApproval, &[], true, 60).act, start(2));
    assert_eq!(
        plan(Phase::AwaitingApproval, &[pod(1, "Running")], true, 60).act,
        wait_for_approvers(&["supervisor", "finance"])
    );
    assert_eq!(
        plan(Phase::AwaitingApproval, &[], false, DAY_SECONDS - 1).act,
        wait_for_approvers(&["supervisor", "finance"])
    );
    // Without an open question, the Job waits for the decision.
    let open = || [Some(approval("supervisor")), Some(approval("finance"))];
    assert_eq!(
        plan_with_approvals(&[], open(), policy_in_force(), 60).act,
        wait_for_approvers(&["supervisor", "finance"])
    );
}

#[test]
fn the_pod_of_a_job_that_waits_for_a_reply_is_deleted_after_the_retention() {
    let ended = [ended_pod(1, 10, Some(parked_for_reply()))];
    assert_eq!(plan(Phase::AwaitingReply, &ended, false, 609).delete, []);
    let deleted: Vec<String> =
        plan(Phase::AwaitingReply, &ended, false, 610).delete.into_iter().map(|pod| pod.name).collect();
    assert_eq!(deleted, ["refund-1-01234"]);
}
