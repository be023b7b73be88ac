//! Tests of the decision for cancelled Jobs, suspended namespaces, deleted Skills and the time to live.

use super::*;
use bloomery_crds::v1alpha1::AskedQuestion;

/// The plan for a Job that was cancelled at second 0.
fn cancelled_at(now: i64, status: &JobStatus, pods: &[Pod]) -> Plan {
    let pods = read(now, status, pods);
    decide(&Facts { ending: Some((EndCause::Cancelled, at(0))), ..facts(now, status, &pods) })
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
#[case::created_and_not_recorded(JobStatus::default(), vec![pod(1, "Pending")], "await pod end Cancelled")]
#[case::ended_and_not_recorded(JobStatus::default(), vec![finished(OutcomeCode::Succeeded)], "end Succeeded by message")]
#[case::starting(status(1, Phase::Starting), vec![pod(1, "Pending")], "await pod end Cancelled")]
#[case::starting_and_deleted_pod(status(1, Phase::Starting), vec![], "end Cancelled")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], "await pod end Cancelled")]
#[case::running_and_deleted_pod(status(1, Phase::Running), vec![], "end Cancelled")]
#[case::running_and_ended_pod(status(1, Phase::Running), vec![ended_pod(1, 10, None)], "end Cancelled")]
#[case::next_created_and_not_recorded(status(1, Phase::Running), vec![ended_pod(1, 10, None), pod(2, "Running")], "await pod end Cancelled")]
#[case::finalizing(status(1, Phase::Finalizing), vec![pod(1, "Running")], "await pod end Cancelled")]
#[case::parked_and_live_pod(status(1, Phase::Queued), vec![pod(1, "Running")], "await pod end Cancelled")]
#[case::parked(status(1, Phase::Queued), vec![ended_pod(1, 10, Some(parked_for_drain()))], "end Cancelled")]
#[case::paused_after_a_loss(paused(Phase::Queued), vec![], "end Cancelled")]
#[case::waits_for_approval(status(1, Phase::AwaitingApproval), vec![], "end Cancelled")]
#[case::waits_for_a_reply(status(1, Phase::AwaitingReply), vec![], "end Cancelled")]
#[case::outcome_by_message(status(1, Phase::Running), vec![finished(OutcomeCode::GateFailed)], "end GateFailed by message")]
#[case::cancelled_by_its_worker(status(1, Phase::Running), vec![finished(OutcomeCode::Cancelled)], "end Cancelled by message")]
#[case::ended(status(1, Phase::Succeeded), vec![], "idle")]
fn a_cancelled_job_ends_when_it_has_no_live_pod(
    #[case] status: JobStatus,
    #[case] pods: Vec<Pod>,
    #[case] expected: &str,
) {
    let read_pods = read(11, &status, &pods);
    assert_eq!(summary(&cancelled_at(11, &status, &pods).act), expected);
    // A suspended namespace makes no difference.
    let ending = |cause| Facts { ending: Some((cause, at(0))), suspended: true, ..facts(11, &status, &read_pods) };
    assert_eq!(summary(&decide(&ending(EndCause::Cancelled)).act), expected);
    // A Job whose Skill was deleted ends in the same way.
    let without_skill = decide(&ending(EndCause::SkillDeleted)).act;
    let expected = if expected.ends_with("by message") {
        expected.to_owned()
    } else {
        expected.replace("Cancelled", "SkillDeleted")
    };
    assert_eq!(summary(&without_skill), expected);
}

#[rstest]
#[case::without_a_report(status(1, Phase::Starting), pod(1, "Running"), 0, Some(0))]
#[case::not_recorded(JobStatus::default(), pod(1, "Running"), 0, Some(0))]
#[case::next_attempt_not_recorded(status(1, Phase::Running), pod(2, "Running"), 0, Some(0))]
#[case::running(status(1, Phase::Running), pod(1, "Running"), 10, Some(20))]
#[case::running_until_the_timeout(status(1, Phase::Running), pod(1, "Running"), 29, Some(1))]
#[case::running_after_the_timeout(status(1, Phase::Running), pod(1, "Running"), 30, Some(0))]
#[case::parked_and_still_alive(status(1, Phase::Queued), pod(1, "Running"), 30, Some(0))]
fn the_live_pod_of_a_cancelled_job_is_deleted_after_a_time(
    #[case] status: JobStatus,
    #[case] pod: Pod,
    #[case] now: i64,
    #[case] left: Option<i64>,
) {
    let decision = cancelled_at(now, &status, std::slice::from_ref(&pod));
    assert_eq!(summary(&decision.act), "await pod end Cancelled", "the Job ends after its pod");
    let deleted: Vec<&str> = decision.delete.iter().map(|pod| pod.uid.as_str()).collect();
    if left == Some(0) {
        assert_eq!(deleted, [pod.metadata.uid.as_deref().unwrap()]);
    } else {
        assert_eq!((deleted.is_empty(), decision.requeue_after), (true, left.map(SignedDuration::from_secs)));
    }
}

/// A worker that has not reported may never receive the directive, so it does not get the long grace period for a call.
#[rstest]
#[case::without_a_report(status(1, Phase::Starting), 1, 0, Some(8))]
#[case::not_recorded(JobStatus::default(), 1, 0, Some(8))]
#[case::next_attempt_not_recorded(status(1, Phase::Running), 2, 0, Some(8))]
#[case::reported_and_timed_out(status(1, Phase::Running), 1, 30, None)]
#[case::found_after_the_end_of_the_job(JobStatus { attempt: None, ..terminal(OutcomeCode::Cancelled) }, 1, 11, Some(8))]
fn only_a_pod_without_a_report_has_a_short_grace_period(
    #[case] status: JobStatus,
    #[case] attempt: u32,
    #[case] now: i64,
    #[case] grace: Option<u32>,
) {
    let decision = cancelled_at(now, &status, &[pod(attempt, "Running")]);
    let graces: Vec<Option<u32>> = decision.delete.iter().map(|pod| pod.grace_seconds).collect();
    assert_eq!(graces, [grace]);
}

#[test]
fn a_cancelled_job_waits_for_a_pod_on_a_lost_node() {
    let mut lost = pod(1, "Running");
    lost.metadata.deletion_timestamp = Some(Time(at(60)));
    let decision = cancelled_at(1000, &status(1, Phase::Running), &[lost]);
    assert_eq!((summary(&decision.act).as_str(), decision.delete), ("await pod end Cancelled NodeLost", vec![]));
}

#[rstest]
#[case::crashed(status(1, Phase::Running), vec![ended_pod(1, 10, None)], Some("ended without an outcome"))]
#[case::deleted(status(1, Phase::Running), vec![], Some("vanished without an outcome"))]
#[case::paused(paused(Phase::Queued), vec![], Some("vanished without an outcome"))]
#[case::parked(status(1, Phase::Queued), vec![], None)]
#[case::parked_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked_for_drain()))], None)]
#[case::parked_for_approval(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked_for_approval()))], None)]
#[case::waits_for_people(status(1, Phase::AwaitingApproval), vec![], None)]
#[case::never_started(JobStatus::default(), vec![], None)]
fn the_outcome_says_that_a_call_may_have_been_in_progress(
    #[case] mut status: JobStatus,
    #[case] pods: Vec<Pod>,
    #[case] expected: Option<&str>,
) {
    status.log = Some(crate::job::fixtures::log(7));
    let Act::End(JobEnd { outcome, read_from: _ }) = cancelled_at(11, &status, &pods).act else { panic!("it ends") };
    match expected {
        None => assert_eq!(outcome.message, "The Job was cancelled."),
        Some(expected) => {
            for part in [expected, "a tool call may have been in progress", &format!("jobs/{UID}")] {
                assert!(outcome.message.contains(part), "{part}: {}", outcome.message);
            }
        }
    }
}

fn question(text: &str) -> AskedQuestion {
    AskedQuestion { id: "q-1".into(), text: text.into(), choices: Vec::new(), refused: None }
}

/// The final report may be refused, because Kubernetes deletes the ServiceAccount with the Skill.
#[rstest]
#[case::with_a_question(vec![question("Has the call 9-1 of process_refund happened?")], "q-1 (\"Has the call 9-1 of process_refund happened?\")")]
#[case::with_no_room_for_it(vec![], "with an open question, which jobs/")]
fn the_outcome_names_questions_that_only_the_termination_message_shows(
    #[case] questions: Vec<AskedQuestion>,
    #[case] expected: &str,
    #[values(EndCause::Cancelled, EndCause::SkillDeleted)] cause: EndCause,
) {
    let mut running = status(1, Phase::Running);
    running.log = Some(crate::job::fixtures::log(7));
    let parked = TerminationMessage { questions, ..message(1, PodEnd::Parked(ParkReason::Reply), None) };
    let pods = read(11, &running, &[ended_pod(1, 10, Some(parked.clone()))]);
    let decided = decide(&Facts { ending: Some((cause, at(0))), ..facts(11, &running, &pods) });
    let Act::End(JobEnd { outcome, read_from }) = decided.act else { panic!("it ends") };
    assert!(outcome.message.contains(expected), "{}", outcome.message);
    assert_eq!((outcome.code, read_from), (cause.code(), Some(Box::new(parked))));
    let remedy = outcome.message.ends_with("Create the Skill again, and then another Job.");
    assert_eq!(remedy, cause == EndCause::SkillDeleted, "{}", outcome.message);
}

#[test]
fn an_unrecorded_pod_of_a_cancelled_job_is_deleted_at_once() {
    let mut over = terminal(OutcomeCode::Cancelled);
    over.attempt = None;
    let unrecorded = decide_at(11, &over, &[pod(1, "Running")], false);
    assert_eq!((unrecorded.act, unrecorded.delete.len()), (Act::Idle, 1));
    let recorded = decide_at(11, &terminal(OutcomeCode::Cancelled), &[pod(1, "Running")], false);
    assert_eq!(recorded.delete, [], "the recorded worker may send its final report");
}

fn suspended_at(now: i64, status: &JobStatus, pods: &[Pod]) -> Plan {
    let pods = read(now, status, pods);
    decide(&Facts { suspended: true, ..facts(now, status, &pods) })
}

#[rstest]
#[case::new(JobStatus::default(), vec![], "suspend")]
#[case::created_and_not_recorded(JobStatus::default(), vec![pod(1, "Pending")], "start 1")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], "observe")]
#[case::parked_and_live_pod(status(1, Phase::Queued), vec![pod(1, "Running")], "observe")]
#[case::parked(status(1, Phase::Queued), vec![], "suspend")]
#[case::lost(status(1, Phase::Running), vec![ended_pod(1, 10, None)], "suspend silent=0")]
#[case::third_silent_attempt(silent(status(3, Phase::Starting), 2), vec![ended_pod(3, 10, None)], "end CrashLoop")]
#[case::held(status(1, Phase::AwaitingApproval), vec![ended_pod(1, 10, Some(parked_for_approval()))], "suspend")]
#[case::outcome_by_message(status(1, Phase::Running), vec![finished(OutcomeCode::Succeeded)], "end Succeeded by message")]
#[case::ended(status(1, Phase::Succeeded), vec![], "idle")]
fn no_pod_starts_in_a_suspended_namespace(#[case] status: JobStatus, #[case] pods: Vec<Pod>, #[case] expected: &str) {
    assert_eq!(summary(&suspended_at(11, &status, &pods).act), expected);
}

#[rstest]
#[case::one_second_before(Some(100), 109, "idle", Some(1))]
#[case::at_the_end(Some(100), 110, "delete", None)]
#[case::long_after(Some(100), 100_000, "delete", None)]
#[case::at_once(Some(0), 10, "delete", None)]
#[case::clock_set_back(Some(0), 5, "idle", Some(5))]
#[case::longest(Some(31_536_000), 10, "idle", Some(31_536_000))]
#[case::never(None, 100_000, "idle", None)]
fn a_job_that_ended_at_second_10_is_deleted_after_its_time_to_live(
    #[case] ttl_seconds: Option<i64>,
    #[case] now: i64,
    #[case] expected: &str,
    #[case] again: Option<i64>,
) {
    let over = terminal(OutcomeCode::Succeeded);
    let decision = decide(&Facts { ttl_seconds, ..facts(now, &over, &[]) });
    assert_eq!(
        (summary(&decision.act).as_str(), decision.requeue_after),
        (expected, again.map(SignedDuration::from_secs))
    );
}

#[test]
fn a_job_is_kept_while_a_follow_up_has_not_started() {
    let over = terminal(OutcomeCode::Succeeded);
    let act = |has_pending_follow_up| {
        decide(&Facts { ttl_seconds: Some(0), has_pending_follow_up, ..facts(20, &over, &[]) }).act
    };
    assert_eq!((act(true), act(false)), (Act::Idle, Act::Delete));
    let open = [crate::approval::evaluate::withdrawal(&approval("supervisor"), "over").unwrap()];
    let with_open_approval = Facts {
        ttl_seconds: Some(0),
        has_pending_follow_up: true,
        open_approval_updates: &open,
        ..facts(20, &over, &[])
    };
    assert_eq!(decide(&with_open_approval).act, Act::UpdateApprovals(open.to_vec()));
}

#[test]
fn the_pods_of_a_kept_job_are_deleted_on_time() {
    let over = terminal(OutcomeCode::Succeeded);
    let pods = read(20, &over, &[ended_pod(1, 15, None)]);
    let without_limit = decide(&facts(20, &over, &pods)).requeue_after;
    assert!(without_limit.is_some_and(|left| left > SignedDuration::ZERO), "{without_limit:?}");
    let kept = Facts { ttl_seconds: Some(0), has_pending_follow_up: true, ..facts(20, &over, &pods) };
    assert_eq!(decide(&kept).requeue_after, without_limit);
}

#[test]
fn a_job_that_has_not_ended_is_not_deleted() {
    let running = status(1, Phase::Running);
    let pods = read(1000, &running, &[pod(1, "Running")]);
    assert_eq!(summary(&decide(&Facts { ttl_seconds: Some(0), ..facts(1000, &running, &pods) }).act), "observe");
}

#[test]
fn open_approvals_of_an_ended_job_are_updated_unless_the_job_is_deleted() {
    let open = [crate::approval::evaluate::withdrawal(&approval("supervisor"), "over").unwrap()];
    let over = terminal(OutcomeCode::Cancelled);
    let plan = |ttl_seconds| decide(&Facts { ttl_seconds, open_approval_updates: &open, ..facts(20, &over, &[]) });
    assert_eq!(plan(None).act, Act::UpdateApprovals(open.to_vec()));
    assert_eq!(
        (plan(Some(60)).act, plan(Some(60)).requeue_after),
        (Act::UpdateApprovals(open.to_vec()), Some(SignedDuration::from_secs(50)))
    );
    assert_eq!(plan(Some(0)).act, Act::Delete);
}
