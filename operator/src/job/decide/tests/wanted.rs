//! What people want of a Job: that it is cancelled, that nothing of its namespace runs, that it goes after a time.

use super::*;
use bloomery_crds::v1alpha1::AskedQuestion;

/// Decides for a Job that is known to be cancelled since second 0.
fn cancelled_at(now: i64, status: &JobStatus, pods: &[Pod]) -> Plan {
    let pods = read(now, status, pods);
    decide(&Facts { ending: Some((Ending::Cancelled, at(0))), ..facts(now, status, &pods) })
}

fn paused(phase: Phase) -> JobStatus {
    let mut status = status(1, phase);
    status.attempt.as_mut().unwrap().ended = Some(Time(at(10)));
    status
}

fn finished(code: OutcomeCode) -> Pod {
    ended_pod(1, 10, Some(message(1, PodEnd::Finished, Some(code))))
}

#[rstest]
#[case::never_started(JobStatus::default(), vec![], "end Cancelled")]
#[case::made_and_not_recorded(JobStatus::default(), vec![pod(1, "Pending")], "give up Cancelled")]
#[case::ended_and_not_recorded(JobStatus::default(), vec![finished(OutcomeCode::Succeeded)], "end Succeeded by message")]
#[case::starting(status(1, Phase::Starting), vec![pod(1, "Pending")], "give up Cancelled")]
#[case::started_and_gone(status(1, Phase::Starting), vec![], "end Cancelled")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], "give up Cancelled")]
#[case::at_work_and_gone(status(1, Phase::Running), vec![], "end Cancelled")]
#[case::at_work_and_ended(status(1, Phase::Running), vec![ended_pod(1, 10, None)], "end Cancelled")]
#[case::next_made_and_not_recorded(status(1, Phase::Running), vec![ended_pod(1, 10, None), pod(2, "Running")], "give up Cancelled")]
#[case::finalizing(status(1, Phase::Finalizing), vec![pod(1, "Running")], "give up Cancelled")]
#[case::parked_and_still_there(status(1, Phase::Queued), vec![pod(1, "Running")], "give up Cancelled")]
#[case::parked(status(1, Phase::Queued), vec![ended_pod(1, 10, Some(parked()))], "end Cancelled")]
#[case::paused_after_a_loss(paused(Phase::Queued), vec![], "end Cancelled")]
#[case::waits_for_approval(status(1, Phase::AwaitingApproval), vec![], "end Cancelled")]
#[case::waits_for_a_reply(status(1, Phase::AwaitingReply), vec![], "end Cancelled")]
#[case::an_outcome_that_was_told_stands(status(1, Phase::Running), vec![finished(OutcomeCode::GateFailed)], "end GateFailed by message")]
#[case::its_own(status(1, Phase::Running), vec![finished(OutcomeCode::Cancelled)], "end Cancelled by message")]
#[case::ended(status(1, Phase::Succeeded), vec![], "rest")]
fn a_cancelled_job(#[case] status: JobStatus, #[case] pods: Vec<Pod>, #[case] expected: &str) {
    let pods_ = read(11, &status, &pods);
    assert_eq!(word(&cancelled_at(11, &status, &pods).act), expected);
    // In a suspended namespace, too.
    let ending = |why| Facts { ending: Some((why, at(0))), suspended: true, ..facts(11, &status, &pods_) };
    assert_eq!(word(&decide(&ending(Ending::Cancelled)).act), expected);
    // So does one whose Skill was deleted.
    let without_skill = decide(&ending(Ending::SkillDeleted)).act;
    let expected = if expected.ends_with("by message") {
        expected.to_owned()
    } else {
        expected.replace("Cancelled", "SkillDeleted")
    };
    assert_eq!(word(&without_skill), expected);
}

#[rstest]
#[case::whose_worker_has_not_reported(status(1, Phase::Starting), pod(1, "Running"), 0, Some(0))]
#[case::that_nobody_recorded(JobStatus::default(), pod(1, "Running"), 0, Some(0))]
#[case::of_an_attempt_that_nobody_recorded(status(1, Phase::Running), pod(2, "Running"), 0, Some(0))]
#[case::running(status(1, Phase::Running), pod(1, "Running"), 10, Some(20))]
#[case::at_work_for_long(status(1, Phase::Running), pod(1, "Running"), 29, Some(1))]
#[case::at_work_for_too_long(status(1, Phase::Running), pod(1, "Running"), 30, Some(0))]
#[case::that_parked_and_does_not_go(status(1, Phase::Queued), pod(1, "Running"), 30, Some(0))]
fn the_live_pod_of_a_cancelled_job(
    #[case] status: JobStatus,
    #[case] pod: Pod,
    #[case] now: i64,
    #[case] left: Option<i64>,
) {
    let decision = cancelled_at(now, &status, std::slice::from_ref(&pod));
    assert_eq!(word(&decision.act), "give up Cancelled", "the Job ends when the pod is gone");
    let deleted: Vec<&str> = decision.delete.iter().map(|doomed| doomed.uid.as_str()).collect();
    if left == Some(0) {
        assert_eq!(deleted, [pod.metadata.uid.as_deref().unwrap()]);
    } else {
        assert_eq!((deleted.is_empty(), decision.requeue_after), (true, left.map(SignedDuration::from_secs)));
    }
}

/// A worker that the operator has not heard of may never hear that its Job is cancelled: it gets no 50 s for a call.
#[rstest]
#[case::has_not_reported(status(1, Phase::Starting), 1, 0, Some(8))]
#[case::nobody_recorded(JobStatus::default(), 1, 0, Some(8))]
#[case::nobody_recorded_it_yet(status(1, Phase::Running), 2, 0, Some(8))]
#[case::was_given_its_time(status(1, Phase::Running), 1, 30, None)]
#[case::is_found_when_the_job_is_over(JobStatus { attempt: None, ..terminal(OutcomeCode::Cancelled) }, 1, 11, Some(8))]
fn the_last_seconds_of_a_worker_that(
    #[case] status: JobStatus,
    #[case] attempt: u32,
    #[case] now: i64,
    #[case] grace: Option<u32>,
) {
    let decision = cancelled_at(now, &status, &[pod(attempt, "Running")]);
    let graces: Vec<Option<u32>> = decision.delete.iter().map(|doomed| doomed.grace).collect();
    assert_eq!(graces, [grace]);
}

#[test]
fn a_pod_on_a_silent_node_is_waited_for_and_named() {
    let mut lost = pod(1, "Running");
    lost.metadata.deletion_timestamp = Some(Time(at(60)));
    let decision = cancelled_at(1000, &status(1, Phase::Running), &[lost]);
    assert_eq!((word(&decision.act).as_str(), decision.delete), ("give up Cancelled NodeLost", vec![]));
}

#[rstest]
#[case::crashed(status(1, Phase::Running), vec![ended_pod(1, 10, None)], Some("ended without an outcome"))]
#[case::deleted(status(1, Phase::Running), vec![], Some("vanished without an outcome"))]
#[case::paused(paused(Phase::Queued), vec![], Some("vanished without an outcome"))]
#[case::parked(status(1, Phase::Queued), vec![], None)]
#[case::parked_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked()))], None)]
#[case::held_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(held()))], None)]
#[case::waits_for_people(status(1, Phase::AwaitingApproval), vec![], None)]
#[case::never_started(JobStatus::default(), vec![], None)]
fn what_may_have_been_under_way_is_said(
    #[case] mut status: JobStatus,
    #[case] pods: Vec<Pod>,
    #[case] says: Option<&str>,
) {
    status.log = Some(crate::job::fixtures::log(7));
    let Act::End(JobEnd { outcome, read_from: _ }) = cancelled_at(11, &status, &pods).act else { panic!("it ends") };
    match says {
        None => assert_eq!(outcome.message, "The Job was cancelled."),
        Some(says) => {
            for part in [says, "a tool call may have been in progress", &format!("jobs/{UID}")] {
                assert!(outcome.message.contains(part), "{part}: {}", outcome.message);
            }
        }
    }
}

fn asked_whether(message: &str) -> AskedQuestion {
    AskedQuestion { id: "q-1".into(), text: message.into(), choices: Vec::new(), refused: None }
}

/// Its report may be refused: the ServiceAccount goes with the Skill.
#[rstest]
#[case::with_a_question(vec![asked_whether("Has the call 9-1 of process_refund happened?")], "q-1 (\"Has the call 9-1 of process_refund happened?\")")]
#[case::with_no_room_for_it(vec![], "with an open question, which jobs/")]
fn what_only_the_pod_tells_of_a_worker_that_parked_is_said(
    #[case] questions: Vec<AskedQuestion>,
    #[case] says: &str,
    #[values(Ending::Cancelled, Ending::SkillDeleted)] why: Ending,
) {
    let mut running = status(1, Phase::Running);
    running.log = Some(crate::job::fixtures::log(7));
    let parked = TerminationMessage { questions, ..message(1, PodEnd::Parked(ParkReason::Reply), None) };
    let pods = read(11, &running, &[ended_pod(1, 10, Some(parked.clone()))]);
    let decided = decide(&Facts { ending: Some((why, at(0))), ..facts(11, &running, &pods) });
    let Act::End(JobEnd { outcome, read_from }) = decided.act else { panic!("it ends") };
    assert!(outcome.message.contains(says), "{}", outcome.message);
    assert_eq!((outcome.code, read_from), (why.code(), Some(Box::new(parked))));
    let remedy = outcome.message.ends_with("Create the Skill again, and then another Job.");
    assert_eq!(remedy, why == Ending::SkillDeleted, "{}", outcome.message);
}

#[test]
fn a_pod_that_was_made_while_its_job_was_cancelled_goes_at_once() {
    let mut over = terminal(OutcomeCode::Cancelled);
    over.attempt = None;
    let gone = decide_at(11, &over, &[pod(1, "Running")], false);
    assert_eq!((gone.act, gone.delete.len()), (Act::Idle, 1));
    let farewell = decide_at(11, &terminal(OutcomeCode::Cancelled), &[pod(1, "Running")], false);
    assert_eq!(farewell.delete, [], "a worker that ended by itself says farewell");
}

fn suspended_at(now: i64, status: &JobStatus, pods: &[Pod]) -> Plan {
    let pods = read(now, status, pods);
    decide(&Facts { suspended: true, ..facts(now, status, &pods) })
}

#[rstest]
#[case::new(JobStatus::default(), vec![], "suspend")]
#[case::made_and_not_recorded(JobStatus::default(), vec![pod(1, "Pending")], "start 1")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], "observe")]
#[case::parked_and_still_there(status(1, Phase::Queued), vec![pod(1, "Running")], "observe")]
#[case::parked(status(1, Phase::Queued), vec![], "suspend")]
#[case::lost(status(1, Phase::Running), vec![ended_pod(1, 10, None)], "suspend silent=0")]
#[case::third_silence(silent(status(3, Phase::Starting), 2), vec![ended_pod(3, 10, None)], "end CrashLoop")]
#[case::held(status(1, Phase::AwaitingApproval), vec![ended_pod(1, 10, Some(held()))], "suspend")]
#[case::outcome_by_message(status(1, Phase::Running), vec![finished(OutcomeCode::Succeeded)], "end Succeeded by message")]
#[case::ended(status(1, Phase::Succeeded), vec![], "rest")]
fn a_suspended_namespace_gets_no_pod(#[case] status: JobStatus, #[case] pods: Vec<Pod>, #[case] expected: &str) {
    assert_eq!(word(&suspended_at(11, &status, &pods).act), expected);
}

#[rstest]
#[case::before(Some(100), 109, "rest", Some(1))]
#[case::when_it_is_over(Some(100), 110, "delete", None)]
#[case::long_after(Some(100), 100_000, "delete", None)]
#[case::at_once(Some(0), 10, "delete", None)]
#[case::clock_set_back(Some(0), 5, "rest", Some(5))]
#[case::longest(Some(31_536_000), 10, "rest", Some(31_536_000))]
#[case::never(None, 100_000, "rest", None)]
fn a_job_that_ended_at_second_10(
    #[case] ttl: Option<i64>,
    #[case] now: i64,
    #[case] expected: &str,
    #[case] again: Option<i64>,
) {
    let over = terminal(OutcomeCode::Succeeded);
    let decision = decide(&Facts { ttl, ..facts(now, &over, &[]) });
    assert_eq!(
        (word(&decision.act).as_str(), decision.requeue_after),
        (expected, again.map(SignedDuration::from_secs))
    );
}

#[test]
fn a_job_stays_as_long_as_one_that_continues_it_has_not_begun() {
    let over = terminal(OutcomeCode::Succeeded);
    let of = |continued| decide(&Facts { ttl: Some(0), has_pending_follow_up: continued, ..facts(20, &over, &[]) }).act;
    assert_eq!((of(true), of(false)), (Act::Idle, Act::Delete));
    let open = [crate::approval::evaluate::withdrawal(&approval("supervisor"), "over").unwrap()];
    let settles =
        Facts { ttl: Some(0), has_pending_follow_up: true, open_approval_updates: &open, ..facts(20, &over, &[]) };
    assert_eq!(decide(&settles).act, Act::UpdateApprovals(open.to_vec()));
}

#[test]
fn a_job_that_has_not_ended_is_not_deleted() {
    let running = status(1, Phase::Running);
    let pods = read(1000, &running, &[pod(1, "Running")]);
    assert_eq!(word(&decide(&Facts { ttl: Some(0), ..facts(1000, &running, &pods) }).act), "observe");
}

#[test]
fn approvals_that_are_left_open_are_settled_before_the_job_rests_and_not_where_it_goes() {
    let open = [crate::approval::evaluate::withdrawal(&approval("supervisor"), "over").unwrap()];
    let over = terminal(OutcomeCode::Cancelled);
    let of = |ttl| decide(&Facts { ttl, open_approval_updates: &open, ..facts(20, &over, &[]) });
    assert_eq!(of(None).act, Act::UpdateApprovals(open.to_vec()));
    assert_eq!(
        (of(Some(60)).act, of(Some(60)).requeue_after),
        (Act::UpdateApprovals(open.to_vec()), Some(SignedDuration::from_secs(50)))
    );
    assert_eq!(of(Some(0)).act, Act::Delete);
}
