//! Jobs that wait for the answer to a question.

use super::*;
use crate::job::fixtures::{asked, policy_in_force};
use bloomery_crds::v1alpha1::WaitingFor;

const DAY: i64 = 24 * 3600;

/// A decision of a Job that asks since the beginning, and may wait for a day.
fn waits(phase: Phase, pods: &[Pod], answered: bool, now: i64) -> Plan {
    let mut status = status(1, phase);
    let call = (phase == Phase::AwaitingApproval).then(held_call);
    status.waiting_for = Some(WaitingFor { call, ..asked(0) });
    let pods = read(now, &status, pods);
    let call = held_call();
    let approvals = [Some(approval("supervisor")), Some(approval("finance"))];
    let names = crate::approval::approval_names("refund", UID, &call);
    let held = CallApprovals { approvals: names.into_iter().zip(approvals).collect(), call, policy: policy_in_force() };
    decide(&Facts {
        call_approvals: (phase == Phase::AwaitingApproval).then_some(&held),
        answers: if answered { AnswerState::Available } else { AnswerState::Pending },
        reply_expiry: Some(SignedDuration::from_secs(DAY)),
        ..facts(now, &status, &pods)
    })
}

#[test]
fn a_job_waits_for_a_reply_as_long_as_it_may_and_costs_nothing() {
    let waits = |now| waits(Phase::AwaitingReply, &[], false, now);
    let left = Some(SignedDuration::from_secs(DAY - 60));
    assert_eq!((waits(60).act, waits(60).requeue_after), (Act::WaitForPeople(PeopleWait::AsRecorded), left));
    let Act::End(end) = waits(DAY).act else { panic!("{:?}", waits(DAY).act) };
    assert_eq!((end.outcome.code, end.outcome.phase()), (OutcomeCode::UserNeeded, Phase::Escalated));
    let message = &end.outcome.message;
    assert!(
        message.starts_with("nobody answered q-1 (\"Which order?\"), q-2 (\"Which shop?\") within 24h"),
        "{message}"
    );
    assert_eq!(end.read_from, None);
}

#[test]
fn a_clock_that_was_set_back_ends_no_wait() {
    let back = waits(Phase::AwaitingReply, &[], false, -3600);
    assert_eq!(
        (back.act, back.requeue_after),
        (Act::WaitForPeople(PeopleWait::AsRecorded), Some(SignedDuration::from_secs(DAY + 3600)))
    );
    assert_eq!(waits(Phase::AwaitingReply, &[], true, -3600).act, start(2));
}

#[test]
fn a_job_whose_skill_cannot_be_read_waits_on() {
    let mut status = status(1, Phase::AwaitingReply);
    status.waiting_for = Some(asked(0));
    let decision = decide_at(1000 * DAY, &status, &[], false);
    assert_eq!((decision.act, decision.requeue_after), (Act::WaitForPeople(PeopleWait::AsRecorded), None));
}

#[test]
fn an_answer_starts_the_next_attempt_once_the_pod_has_ended() {
    for now in [60, 2 * DAY] {
        assert_eq!(
            waits(Phase::AwaitingReply, &[], true, now).act,
            start(2),
            "an answer counts, however late it is seen"
        );
    }
    assert_eq!(waits(Phase::AwaitingReply, &[ended_pod(1, 10, Some(asked_by_message()))], true, 60).act, start(2));
    assert_eq!(waits(Phase::AwaitingReply, &[pod(1, "Running")], true, 60).act, Act::Observe(None));
}

#[test]
fn beside_a_held_call_an_answer_starts_the_next_attempt_and_the_questions_do_not_expire() {
    assert_eq!(waits(Phase::AwaitingApproval, &[], true, 60).act, start(2));
    assert_eq!(waits(Phase::AwaitingApproval, &[pod(1, "Running")], true, 60).act, awaits(&["supervisor", "finance"]));
    assert_eq!(waits(Phase::AwaitingApproval, &[], false, DAY - 1).act, awaits(&["supervisor", "finance"]));
    // Without a question that is open, a reply waits for the decision.
    let supervisor = || [Some(approval("supervisor")), Some(approval("finance"))];
    assert_eq!(waits_with(&[], supervisor(), policy_in_force(), 60).act, awaits(&["supervisor", "finance"]));
}

#[test]
fn pods_of_a_job_that_waits_for_a_reply_are_kept_no_longer_than_others() {
    let ended = [ended_pod(1, 10, Some(asked_by_message()))];
    assert_eq!(waits(Phase::AwaitingReply, &ended, false, 609).delete, []);
    let doomed: Vec<String> =
        waits(Phase::AwaitingReply, &ended, false, 610).delete.into_iter().map(|doomed| doomed.name).collect();
    assert_eq!(doomed, ["refund-1-01234"]);
}
