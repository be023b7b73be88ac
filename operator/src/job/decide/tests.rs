//! Tests of the decision for a Job.

use super::*;
use crate::approval::evaluate::{ApprovalUpdate, CallApprovals, PendingDecision};
use crate::approval::policy::PolicyState;
use crate::job::ending::EndCause;
use crate::job::fixtures::{
    UID, approval, at, counted, decided, ended_pod, held_call, message, pod, pod_uid, policy_in_force, status,
};
use crate::job::plan::{JobEnd, LostAttempt, PeopleWait, PodDeletion};
use crate::job::replies::AnswerState;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{ParkReason, PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, JobStatus};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

mod disruption;
mod memory_fault;
mod replies;

const RETENTION: SignedDuration = SignedDuration::from_secs(600);

fn decide_at(now: i64, status: &JobStatus, pods: &[Pod], skill_gone: bool) -> Plan {
    let pods = read(now, status, pods);
    let ending = skill_gone.then(|| (EndCause::SkillDeleted, at(0)));
    decide(&Facts { ending, ..facts(now, status, &pods) })
}

fn read(now: i64, status: &JobStatus, pods: &[Pod]) -> Vec<WorkerPod> {
    let recorded = status.attempt.as_ref();
    pods.iter().filter_map(|pod| WorkerPod::read(pod, ("refund", UID), recorded, at(now))).collect()
}

/// The facts of a Job without requests of people.
fn facts<'a>(now: i64, status: &'a JobStatus, pods: &'a [WorkerPod]) -> Facts<'a> {
    Facts {
        job: ("refund", UID),
        status,
        pods,
        call_approvals: None,
        open_approval_updates: &[],
        ending: None,
        suspended: false,
        start_after: None,
        ttl_seconds: None,
        answers: AnswerState::Awaited,
        has_child_news: false,
        reply_expiry: None,
        has_pending_follow_up: false,
        retention: RETENTION,
        now: at(now),
    }
}

fn act_at(now: i64, status: &JobStatus, pods: &[Pod]) -> Act {
    decide_at(now, status, pods, false).act
}

fn start(attempt: u32) -> Act {
    Act::Start { attempt, after: None }
}

/// The status after this number of consecutive attempts without a report or a message.
fn silent(mut status: JobStatus, silent: u32) -> JobStatus {
    status.attempt.as_mut().unwrap().silent = Some(silent);
    status
}

fn parked_for_reply() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Reply), None)
}

fn parked_for_approval() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Approval), None)
}

fn parked_for_drain() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Drain), None)
}

/// The status after this number of consecutive attempts that parked without a report.
fn unreported(mut status: JobStatus, attempts: u32) -> JobStatus {
    status.attempt.as_mut().unwrap().untold = Some(attempts);
    status
}

/// The deletion of the pod of an attempt, with the pod's own grace period.
fn deletion(attempt: u32) -> PodDeletion {
    PodDeletion { name: format!("refund-{attempt}-01234"), uid: pod_uid(attempt), grace_seconds: None }
}

/// The counts of a lost attempt. The number of silent attempts is omitted if only disruptions are counted.
fn counts(lost: &LostAttempt) -> String {
    match (lost.silent, lost.disrupted) {
        (silent, 0) => format!("silent={silent}"),
        (0, disrupted) => format!("disrupted={disrupted}"),
        (silent, disrupted) => format!("silent={silent} disrupted={disrupted}"),
    }
}

/// A short description of an act.
fn summary(act: &Act) -> String {
    match act {
        Act::Idle => "idle".into(),
        Act::Delete => "delete".into(),
        Act::Suspend(None) => "suspend".into(),
        Act::Suspend(Some(lost)) => format!("suspend {}", counts(lost)),
        Act::AwaitPodEnd(cause, problem) => {
            let problem = problem.as_ref().map(|problem| format!(" {}", problem.reason)).unwrap_or_default();
            format!("await pod end {}{problem}", cause.code())
        }
        Act::Observe(problem) => problem.as_ref().map_or("observe".into(), |problem| problem.reason.to_string()),
        Act::KeepPausing => "keep pausing".into(),
        Act::WaitForPeople(PeopleWait::PolicyMissing(_)) => "policy missing".into(),
        Act::WaitForPeople(PeopleWait::AsRecorded | PeopleWait::Approvers(_)) => "wait for people".into(),
        Act::WaitForChildren => "wait for children".into(),
        Act::UpdateApprovals(updates) => format!("update {} Approvals", updates.len()),
        Act::Wait(wait, _) => panic!("{wait:?} is found by a later step"),
        Act::CreateSkill(_) => panic!("a later step finds that the Skill is missing"),
        Act::Pause(lost) => format!("pause {}", counts(lost)),
        Act::Start { attempt, after: None } => format!("start {attempt}"),
        Act::Start { attempt, after: Some(lost) } => format!("start {attempt} {}", counts(lost)),
        Act::RecordParking(_) => "record parking".into(),
        Act::End(end) => {
            format!("end {}{}", end.outcome.code, if end.read_from.is_some() { " by message" } else { "" })
        }
    }
}

#[rstest]
#[case::new(JobStatus::default(), vec![], 0, "start 1")]
#[case::alive(status(1, Phase::Starting), vec![pod(1, "Pending")], 0, "observe")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], 0, "observe")]
// A pause of one second is not written if the pod holds its end time.
#[case::crashed(status(1, Phase::Running), vec![ended_pod(1, 10, None)], 10, "keep pausing")]
#[case::crashed_a_second_ago(status(1, Phase::Running), vec![ended_pod(1, 10, None)], 11, "start 2 silent=0")]
#[case::without_a_report(status(1, Phase::Starting), vec![ended_pod(1, 10, None)], 11, "start 2 silent=1")]
#[case::vanished(status(1, Phase::Starting), vec![], 11, "pause disrupted=1")]
#[case::vanished_after_reports(status(1, Phase::Running), vec![], 11, "pause disrupted=1")]
#[case::second_pause(silent(status(2, Phase::Starting), 1), vec![ended_pod(2, 10, None)], 14, "pause silent=2")]
#[case::second_pause_over(silent(status(2, Phase::Starting), 1), vec![ended_pod(2, 10, None)], 15, "start 3 silent=2")]
#[case::third_silent_attempt(silent(status(3, Phase::Starting), 2), vec![ended_pod(3, 10, None)], 11, "end CrashLoop")]
#[case::report_after_silent_attempts(silent(status(3, Phase::Running), 2), vec![ended_pod(3, 10, None)], 35, "start 4 silent=0")]
#[case::third_pause(status(3, Phase::Running), vec![ended_pod(3, 10, None)], 34, "pause silent=0")]
#[case::parked_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked_for_drain()))], 10, "start 2")]
#[case::parked_by_report(status(1, Phase::Queued), vec![ended_pod(1, 10, None)], 10, "start 2")]
#[case::parked_and_deleted_pod(status(1, Phase::Queued), vec![], 10, "start 2")]
#[case::parked_and_live_pod(status(1, Phase::Queued), vec![pod(1, "Running")], 10, "observe")]
#[case::parked_for_approval(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked_for_approval()))], 11, "record parking")]
#[case::parked_for_reply(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked_for_reply()))], 11, "record parking")]
#[case::question_not_reported(status(1, Phase::AwaitingReply), vec![ended_pod(1, 10, Some(parked_for_reply()))], 11, "start 2")]
#[case::question_not_reported_in_the_pause(status(2, Phase::AwaitingReply), vec![ended_pod(2, 10, Some(parked_for_reply()))], 11, "wait for people")]
#[case::child(status(1, Phase::AwaitingJob), vec![ended_pod(1, 10, Some(message(1, PodEnd::Parked(ParkReason::Children), None)))], 11, "wait for children")]
#[case::child_and_deleted_pod(status(1, Phase::AwaitingJob), vec![], 5000, "wait for children")]
#[case::child_and_live_pod(status(1, Phase::AwaitingJob), vec![pod(1, "Running")], 11, "observe")]
// Without the report, the next worker reports its children again.
#[case::child_not_reported(status(1, Phase::Running), vec![ended_pod(1, 10, Some(message(1, PodEnd::Parked(ParkReason::Children), None)))], 11, "start 2")]
#[case::question_and_live_pod(status(1, Phase::AwaitingReply), vec![pod(1, "Running")], 11, "observe")]
#[case::question_and_deleted_pod(status(1, Phase::AwaitingReply), vec![], 5000, "start 2")]
// No report has described the call, so the next worker reports it.
#[case::call_not_reported(status(1, Phase::AwaitingApproval), vec![ended_pod(1, 10, Some(parked_for_approval()))], 11, "start 2")]
#[case::call_not_reported_in_the_pause(status(2, Phase::AwaitingApproval), vec![ended_pod(2, 10, Some(parked_for_approval()))], 11, "wait for people")]
#[case::call_and_live_pod(status(1, Phase::AwaitingApproval), vec![pod(1, "Running")], 11, "observe")]
#[case::call_and_deleted_pod(status(1, Phase::AwaitingApproval), vec![], 5000, "start 2")]
// After three attempts without a report, nobody can be asked.
#[case::question_twice_not_reported(unreported(status(2, Phase::AwaitingReply), 2), vec![], 11, "start 3")]
#[case::question_never_reported(unreported(status(3, Phase::AwaitingReply), 3), vec![], 11, "end UserNeeded")]
#[case::call_never_reported(unreported(status(3, Phase::AwaitingApproval), 3), vec![ended_pod(3, 10, Some(parked_for_approval()))], 11, "end UserNeeded")]
#[case::call_never_reported_and_live_pod(unreported(status(3, Phase::AwaitingApproval), 3), vec![pod(3, "Running")], 11, "observe")]
#[case::drained_after_unreported_parkings(unreported(status(3, Phase::Queued), 3), vec![], 11, "start 4")]
#[case::superseded(
    status(1, Phase::Starting),
    vec![ended_pod(1, 10, Some(message(1, PodEnd::Superseded, None)))],
    11,
    "start 2 silent=0"
)]
#[case::outcome_by_message(
    status(1, Phase::Running),
    vec![ended_pod(1, 10, Some(message(1, PodEnd::Finished, Some(OutcomeCode::GateFailed))))],
    10,
    "end GateFailed by message"
)]
#[case::created_and_not_recorded(status(1, Phase::Running), vec![ended_pod(1, 10, None), pod(2, "Running")], 10, "start 2 silent=0")]
#[case::ended(status(1, Phase::Succeeded), vec![ended_pod(1, 10, None)], 10, "idle")]
fn the_act_follows_from_the_status_and_the_pods(
    #[case] status: JobStatus,
    #[case] pods: Vec<Pod>,
    #[case] now: i64,
    #[case] expected: &str,
) {
    assert_eq!(summary(&act_at(now, &status, &pods)), expected);
}

#[test]
fn a_job_resumes_with_the_end_of_a_child_and_ends_without_a_loss_if_it_is_cancelled() {
    let waiting = status(1, Phase::AwaitingJob);
    let news = |pods: &[WorkerPod]| decide(&Facts { has_child_news: true, ..facts(11, &waiting, pods) }).act;
    assert_eq!(news(&[]), start(2));
    assert_eq!(news(&read(11, &waiting, &[pod(1, "Running")])), Act::Observe(None));
    let ending = Some((EndCause::Cancelled, at(0)));
    let Act::End(end) = decide(&Facts { ending, ..facts(11, &waiting, &[]) }).act else { panic!("it ends") };
    assert_eq!(end.outcome.message, "The Job was cancelled.");
    assert_eq!(decide_at(610, &waiting, &[ended_pod(1, 10, None)], false).delete, [deletion(1)]);
}

#[test]
fn a_recorded_pause_does_not_depend_on_the_pod() {
    let mut status = silent(status(2, Phase::Queued), 2);
    status.attempt.as_mut().unwrap().ended = Some(Time(at(10)));
    for pods in [vec![], vec![ended_pod(2, 10, None)]] {
        let paused = decide_at(12, &status, &pods, false);
        assert_eq!((paused.act, paused.requeue_after), (Act::KeepPausing, Some(SignedDuration::from_secs(3))));
        assert_eq!(summary(&act_at(15, &status, &pods)), "start 3 silent=2");
    }
}

#[test]
fn a_node_whose_clock_is_ahead_does_not_lengthen_a_pause() {
    let decision = decide_at(10, &status(1, Phase::Running), &[ended_pod(1, 500, None)], false);
    let Act::Pause(lost) = decision.act else { panic!("{:?}", decision.act) };
    assert_eq!((lost.ended, decision.requeue_after), (at(10), Some(SignedDuration::from_secs(1))));
}

#[rstest]
#[case::in_the_pause(Some(10), 10, 12, Some(3))]
#[case::after_the_pause(Some(10), 10, 15, None)]
#[case::clock_of_the_node_is_ahead(Some(10), 500, 12, Some(3))]
#[case::clock_of_the_operator_was_set_back(Some(10), 10, -3600, None)]
#[case::start_of_the_wait_is_unknown(None, 10, 12, Some(3))]
fn the_pause_before_a_second_report_uses_the_earlier_clock(
    #[case] since: Option<i64>,
    #[case] ended: i64,
    #[case] now: i64,
    #[case] left: Option<i64>,
) {
    let mut status = status(2, Phase::AwaitingReply);
    let since = since.map(|since| Time(at(since)));
    status.waiting_for = Some(bloomery_crds::v1alpha1::WaitingFor { since, ..Default::default() }.into());
    let termination = message(2, PodEnd::Parked(ParkReason::Reply), None);
    let decision = decide_at(now, &status, &[ended_pod(2, ended, Some(termination))], false);
    let expected = left.map_or_else(|| start(3), |_| Act::WaitForPeople(PeopleWait::AsRecorded));
    assert_eq!((decision.act, left.and(decision.requeue_after)), (expected, left.map(SignedDuration::from_secs)));
}

#[test]
fn the_outcome_explains_that_nobody_can_be_asked() {
    let mut waiting = unreported(status(3, Phase::AwaitingApproval), 3);
    waiting.log = Some(crate::job::fixtures::log(7));
    let Act::End(JobEnd { outcome, read_from: None }) = act_at(11, &waiting, &[]) else { panic!("it ends") };
    let log = format!("jobs/{UID}");
    for part in
        ["a call waits for an approval", "3 consecutive attempts", &log, "kubectl logs refund-3-01234", "was not made"]
    {
        assert!(outcome.message.contains(part), "{part}: {}", outcome.message);
    }
    let Act::End(end) = act_at(11, &unreported(status(3, Phase::AwaitingReply), 3), &[]) else { panic!("it ends") };
    assert!(end.outcome.message.starts_with("a question waits for an answer"), "{}", end.outcome.message);
}

#[test]
fn no_second_pod_starts_while_the_node_is_lost() {
    let mut lost = pod(1, "Running");
    lost.metadata.deletion_timestamp = Some(Time(at(60)));
    let decision = decide_at(1000, &status(1, Phase::Running), &[lost], false);
    assert_eq!(summary(&decision.act), "NodeLost");
    assert!(decision.requeue_after.is_some());
}

#[test]
fn no_second_pod_starts_while_a_pod_without_labels_is_alive() {
    let mut bare = pod(1, "Running");
    bare.metadata.labels = None;
    let decision = decide_at(1000, &status(1, Phase::Running), &[bare.clone()], false);
    assert_eq!((decision.act, decision.requeue_after), (Act::Observe(None), Some(SignedDuration::from_secs(60))));
    let mut mislabelled = pod(1, "Running");
    let labels = mislabelled.metadata.labels.as_mut().unwrap();
    labels.insert(bloomery_crds::names::LABEL_ATTEMPT.into(), "2".into());
    assert_eq!(act_at(1000, &status(1, Phase::Running), &[mislabelled]), Act::Observe(None));
    let labelled = decide_at(1000, &status(1, Phase::Running), &[pod(1, "Running")], false);
    assert_eq!(labelled.requeue_after, None, "a labelled pod is watched");
}

#[test]
fn no_second_pod_starts_while_a_pod_without_an_owner_is_alive() {
    let mut orphan = pod(1, "Running");
    orphan.metadata.owner_references = None;
    let decision = decide_at(1000, &status(1, Phase::Running), std::slice::from_ref(&orphan), false);
    assert_eq!((decision.act, decision.requeue_after), (Act::Observe(None), None), "the pod is watched by its labels");
    let mut ended = status(1, Phase::Succeeded);
    ended.completion_time = Some(Time(at(1000)));
    let deleted: Vec<String> =
        decide_at(1180, &ended, &[orphan], false).delete.into_iter().map(|pod| pod.uid).collect();
    assert_eq!(deleted, [pod_uid(1)]);
}

#[test]
fn a_job_whose_skill_was_deleted_waits_for_its_worker() {
    let running = decide_at(5, &status(1, Phase::Running), &[pod(1, "Running")], true);
    assert_eq!((summary(&running.act).as_str(), running.delete.len()), ("await pod end SkillDeleted", 0));
    assert_eq!(running.requeue_after, Some(SignedDuration::from_secs(25)));
    let ended = ended_pod(1, 3, Some(message(1, PodEnd::Finished, Some(OutcomeCode::Succeeded))));
    assert_eq!(summary(&decide_at(5, &status(1, Phase::Running), &[ended], true).act), "end Succeeded by message");
}

#[test]
fn the_pod_of_a_waiting_job_is_deleted_after_the_retention() {
    let waiting = status(1, Phase::AwaitingApproval);
    let kept = decide_at(609, &waiting, &[ended_pod(1, 10, None)], false);
    assert_eq!((kept.delete, kept.requeue_after), (vec![], Some(SignedDuration::from_secs(1))));
    let expired = decide_at(610, &waiting, &[ended_pod(1, 10, None)], false);
    assert_eq!(expired.delete, [deletion(1)]);
    let unrecorded =
        decide_at(5000, &status(1, Phase::Running), &[ended_pod(1, 10, Some(parked_for_approval()))], false);
    assert_eq!(unrecorded.delete, [], "the termination message is not recorded yet");
    assert_eq!(summary(&decide_at(11, &waiting, &[], true).act), "end SkillDeleted");
}

#[test]
fn a_pod_that_was_created_again_from_its_manifest_keeps_its_attempt() {
    let mut copy = pod(1, "Running");
    copy.metadata.uid = Some("copy".into());
    assert_eq!(act_at(5, &status(1, Phase::Running), &[copy]), Act::Observe(None));
}

/// The pod whose sidecar runs on after the worker.
fn with_sidecar(mut pod: Pod) -> Pod {
    let status = pod.status.as_mut().unwrap();
    status.phase = Some("Running".into());
    let sidecar = ContainerStatus { name: "proxy".into(), ..ContainerStatus::default() };
    status.container_statuses.get_or_insert_default().push(sidecar);
    pod
}

fn terminal(code: OutcomeCode) -> JobStatus {
    let outcome = Outcome::new(code, "over");
    let mut status = status(1, outcome.phase());
    status.outcome = Some(outcome);
    status.completion_time = Some(Time(at(10)));
    status
}

#[rstest]
#[case::in_the_retention(OutcomeCode::Succeeded, ended_pod(1, 10, None), 609, false, Some(1))]
#[case::after_the_retention(OutcomeCode::Succeeded, ended_pod(1, 10, None), 610, true, None)]
#[case::beside_a_sidecar(OutcomeCode::Succeeded, with_sidecar(ended_pod(1, 10, None)), 20, true, None)]
#[case::alive_for_its_final_report(OutcomeCode::Succeeded, pod(1, "Running"), 20, false, Some(170))]
#[case::alive_for_too_long(OutcomeCode::Succeeded, pod(1, "Running"), 190, true, None)]
#[case::alive_without_its_skill(OutcomeCode::SkillDeleted, pod(1, "Running"), 20, false, Some(170))]
fn pods_of_an_ended_job_are_deleted_after_a_time(
    #[case] code: OutcomeCode,
    #[case] pod: Pod,
    #[case] now: i64,
    #[case] deleted: bool,
    #[case] again: Option<i64>,
) {
    let decision = decide_at(now, &terminal(code), &[pod], false);
    let expected = deleted.then(|| deletion(1));
    assert_eq!(decision.act, Act::Idle);
    assert_eq!(decision.delete, Vec::from_iter(expected));
    assert_eq!(decision.requeue_after, again.map(SignedDuration::from_secs));
}

#[test]
fn the_next_attempt_does_not_wait_for_a_sidecar_of_the_last_one() {
    let pods = [with_sidecar(ended_pod(1, 10, None))];
    assert_eq!(summary(&act_at(700, &status(1, Phase::Running), &pods)), "start 2 silent=0");
}

#[test]
fn pods_of_replaced_attempts_are_deleted_and_the_last_pod_is_kept() {
    let pods = [ended_pod(1, 10, None), ended_pod(2, 20, None)];
    let decision = decide_at(700, &status(2, Phase::Running), &pods, false);
    assert_eq!(decision.delete, [deletion(1)]);
    assert_eq!(summary(&decision.act), "start 3 silent=0");
    let mut deleting = ended_pod(1, 10, None);
    deleting.metadata.deletion_timestamp = Some(Time(at(650)));
    assert_eq!(decide_at(700, &status(2, Phase::Running), &[deleting, pod(2, "Running")], false).delete, []);
}

#[test]
fn a_starting_pod_is_checked_at_the_ages_of_known_problems() {
    let again = |now| decide_at(now, &status(1, Phase::Starting), &[pod(1, "Pending")], false).requeue_after;
    assert_eq!(again(1), Some(SignedDuration::from_secs(4)));
    assert_eq!(again(5), Some(SignedDuration::from_secs(55)));
    assert_eq!(again(60), None);
    assert_eq!(act_at(0, &JobStatus::default(), &[]), start(1));
}

/// The plan for a Job that waits for these Approvals.
fn plan_with_approvals(pods: &[Pod], approvals: [Option<Approval>; 2], guard: PolicyState, now: i64) -> Plan {
    let status = status(1, Phase::AwaitingApproval);
    let pods = read(now, &status, pods);
    let call = held_call();
    let names = crate::approval::approval_names("refund", UID, &call);
    let call_approvals = CallApprovals { approvals: names.into_iter().zip(approvals).collect(), call, policy: guard };
    decide(&Facts { call_approvals: Some(&call_approvals), ..facts(now, &status, &pods) })
}

#[test]
fn an_attempt_after_attempts_without_progress_waits() {
    let (status, second) = (status(1, Phase::Queued), SignedDuration::from_secs(1));
    let plan = |pods: &[Pod], suspended| {
        let pods = read(11, &status, pods);
        decide(&Facts { start_after: Some(second), suspended, ..facts(11, &status, &pods) })
    };
    let waits = plan(&[], false);
    assert_eq!((waits.act, waits.requeue_after), (Act::KeepPausing, Some(second)));
    assert_eq!(plan(&[], true).act, Act::Suspend(None));
    assert_eq!(plan(&[pod(2, "Running")], false).act, start(2), "the pod exists and is only recorded");
}

/// The wait for these approvers.
fn wait_for_approvers(approvers: &[&str]) -> Act {
    let pending = |approver: &&str| PendingDecision {
        approver: (*approver).to_owned(),
        approval: approval(approver).metadata.name.unwrap(),
    };
    Act::WaitForPeople(PeopleWait::Approvers(approvers.iter().map(pending).collect()))
}

#[test]
fn a_job_waits_for_approvers_until_the_first_approval_expires() {
    let open = || [Some(approval("supervisor")), Some(approval("finance"))];
    let waits = plan_with_approvals(&[], open(), policy_in_force(), 60);
    assert_eq!(
        (waits.act, waits.requeue_after),
        (wait_for_approvers(&["supervisor", "finance"]), Some(SignedDuration::from_secs(24 * 3600 - 60)))
    );
    let one = [Some(counted(approval("supervisor"), ApprovalVerdict::Approve)), Some(approval("finance"))];
    assert_eq!(plan_with_approvals(&[], one, policy_in_force(), 60).act, wait_for_approvers(&["finance"]));
    let missing = PolicyState::Missing("gone".into());
    assert_eq!(
        plan_with_approvals(&[], open(), missing, 60).act,
        Act::WaitForPeople(PeopleWait::PolicyMissing("gone".into()))
    );
}

#[test]
fn a_decision_is_counted_before_the_next_attempt_starts() {
    let yes = ApprovalVerdict::Approve;
    let supervisor = decided(approval("supervisor"), yes);
    let name = supervisor.metadata.name.clone().unwrap();
    let plan = plan_with_approvals(&[], [Some(supervisor), Some(approval("finance"))], policy_in_force(), 60);
    assert_eq!(plan.act, Act::UpdateApprovals(vec![ApprovalUpdate::Count(name)]));
    let both = || [Some(counted(approval("supervisor"), yes)), Some(counted(approval("finance"), yes))];
    assert_eq!(plan_with_approvals(&[], both(), policy_in_force(), 60).act, start(2));
    assert_eq!(plan_with_approvals(&[ended_pod(1, 59, None)], both(), policy_in_force(), 60).act, start(2));
    // The next pod never starts while the previous one is alive.
    assert_eq!(plan_with_approvals(&[pod(1, "Running")], both(), policy_in_force(), 60).act, Act::Observe(None));
}

#[rstest]
#[case::set_back_after_it_was_asked(-3600)]
#[case::in_time(60)]
#[case::in_the_last_second(24 * 3600 - 1)]
fn a_decision_before_the_expiry_counts_even_if_the_clock_was_set_back(#[case] now: i64) {
    let yes = decided(approval("supervisor"), ApprovalVerdict::Approve);
    let name = yes.metadata.name.clone().unwrap();
    let plan = plan_with_approvals(&[], [Some(yes.clone()), Some(approval("finance"))], policy_in_force(), now);
    assert_eq!(plan.act, Act::UpdateApprovals(vec![ApprovalUpdate::Count(name)]));
    assert_eq!(crate::approval::evaluate::verdict_at(&yes.spec, at(now)), ApprovalVerdict::Approve);
}

#[test]
fn a_counted_decision_does_not_depend_on_the_clock() {
    let both = || ["supervisor", "finance"].map(|of| Some(counted(approval(of), ApprovalVerdict::Approve)));
    for now in [-3600, 60, 24 * 3600, 1000 * 24 * 3600] {
        assert_eq!(plan_with_approvals(&[], both(), policy_in_force(), now).act, start(2), "{now}");
    }
    // A clock that was set back extends the wait by the same time.
    let open = || [Some(approval("supervisor")), Some(approval("finance"))];
    let back = plan_with_approvals(&[], open(), policy_in_force(), -3600);
    assert_eq!(
        (back.act, back.requeue_after),
        (wait_for_approvers(&["supervisor", "finance"]), Some(SignedDuration::from_secs(25 * 3600)))
    );
}

mod lifecycle;
