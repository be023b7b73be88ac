use super::*;
use crate::approval::evaluate::{ApprovalUpdate, CallApprovals, PendingDecision};
use crate::approval::policy::PolicyState;
use crate::job::ending::Ending;
use crate::job::fixtures::{
    UID, approval, at, counted, decided, ended_pod, held_call, message, pod, pod_uid, policy_in_force, status,
};
use crate::job::plan::{JobEnd, PeopleWait, PodDeletion};
use crate::job::replies::AnswerState;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{ParkReason, PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

mod replies;

const RETENTION: SignedDuration = SignedDuration::from_secs(600);

fn decide_at(now: i64, status: &JobStatus, pods: &[Pod], skill_gone: bool) -> Plan {
    let pods = read(now, status, pods);
    let ending = skill_gone.then(|| (Ending::SkillDeleted, at(0)));
    decide(&Facts { ending, ..facts(now, status, &pods) })
}

fn read(now: i64, status: &JobStatus, pods: &[Pod]) -> Vec<WorkerPod> {
    let recorded = status.attempt.as_ref();
    pods.iter().filter_map(|pod| WorkerPod::read(pod, UID, recorded, at(now))).collect()
}

/// Of a Job that nobody wants anything of.
fn facts<'a>(now: i64, status: &'a JobStatus, pods: &'a [WorkerPod]) -> Facts<'a> {
    Facts {
        job: ("refund", UID),
        status,
        pods,
        call_approvals: None,
        open_approval_updates: &[],
        ending: None,
        suspended: false,
        ttl: None,
        answers: AnswerState::Pending,
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

fn silent(mut status: JobStatus, silent: u32) -> JobStatus {
    status.attempt.as_mut().unwrap().silent = Some(silent);
    status
}

fn asked_by_message() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Reply), None)
}

fn held() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Approval), None)
}

fn parked() -> TerminationMessage {
    message(1, PodEnd::Parked(ParkReason::Drain), None)
}

fn untold(mut status: JobStatus, untold: u32) -> JobStatus {
    status.attempt.as_mut().unwrap().untold = Some(untold);
    status
}

/// The pod of an attempt, deleted with all its time to end.
fn doomed(attempt: u32) -> PodDeletion {
    PodDeletion { name: format!("refund-{attempt}-01234"), uid: pod_uid(attempt), grace: None }
}

/// The short word for an act.
fn word(act: &Act) -> String {
    match act {
        Act::Idle => "rest".into(),
        Act::Delete => "delete".into(),
        Act::Suspend(None) => "suspend".into(),
        Act::Suspend(Some(lost)) => format!("suspend silent={}", lost.silent),
        Act::AwaitPodEnd(why, problem) => {
            let problem = problem.as_ref().map(|problem| format!(" {}", problem.reason)).unwrap_or_default();
            format!("give up {}{problem}", why.code())
        }
        Act::Observe(problem) => problem.as_ref().map_or("observe".into(), |problem| problem.reason.to_string()),
        Act::KeepPausing => "keep pausing".into(),
        Act::WaitForPeople(PeopleWait::PolicyMissing(_)) => "unguarded".into(),
        Act::WaitForPeople(PeopleWait::AsRecorded | PeopleWait::Approvers(_)) => "await".into(),
        Act::UpdateApprovals(updates) => format!("settle {}", updates.len()),
        Act::Wait(wait, _) => panic!("{wait:?} is found by a later step"),
        Act::Pause(lost) => format!("pause silent={}", lost.silent),
        Act::Start { attempt, after: None } => format!("start {attempt}"),
        Act::Start { attempt, after: Some(lost) } => format!("start {attempt} silent={}", lost.silent),
        Act::RecordParking(_) => "rest as told".into(),
        Act::End(end) => {
            format!("end {}{}", end.outcome.code, if end.read_from.is_some() { " by message" } else { "" })
        }
    }
}

#[rstest]
#[case::new(JobStatus::default(), vec![], 0, "start 1")]
#[case::alive(status(1, Phase::Starting), vec![pod(1, "Pending")], 0, "observe")]
#[case::running(status(1, Phase::Running), vec![pod(1, "Running")], 0, "observe")]
// A pause of one second is not worth a write where the pod itself keeps the time.
#[case::crashed(status(1, Phase::Running), vec![ended_pod(1, 10, None)], 10, "keep pausing")]
#[case::crashed_a_second_ago(status(1, Phase::Running), vec![ended_pod(1, 10, None)], 11, "start 2 silent=0")]
#[case::never_heard_of(status(1, Phase::Starting), vec![ended_pod(1, 10, None)], 11, "start 2 silent=1")]
#[case::vanished(status(1, Phase::Starting), vec![], 11, "pause silent=1")]
#[case::vanished_after_reports(status(1, Phase::Running), vec![], 11, "pause silent=0")]
#[case::second_pause(silent(status(2, Phase::Starting), 1), vec![ended_pod(2, 10, None)], 14, "pause silent=2")]
#[case::second_pause_over(silent(status(2, Phase::Starting), 1), vec![ended_pod(2, 10, None)], 15, "start 3 silent=2")]
#[case::third_silence(silent(status(3, Phase::Starting), 2), vec![ended_pod(3, 10, None)], 11, "end CrashLoop")]
#[case::silence_broken(silent(status(3, Phase::Running), 2), vec![ended_pod(3, 10, None)], 35, "start 4 silent=0")]
#[case::third_pause(status(3, Phase::Running), vec![ended_pod(3, 10, None)], 34, "pause silent=0")]
#[case::parked_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(parked()))], 10, "start 2")]
#[case::parked_by_report(status(1, Phase::Queued), vec![ended_pod(1, 10, None)], 10, "start 2")]
#[case::parked_and_gone(status(1, Phase::Queued), vec![], 10, "start 2")]
#[case::parked_and_still_there(status(1, Phase::Queued), vec![pod(1, "Running")], 10, "observe")]
#[case::held_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(held()))], 11, "rest as told")]
#[case::asked_by_message(status(1, Phase::Running), vec![ended_pod(1, 10, Some(asked_by_message()))], 11, "rest as told")]
#[case::asked_and_not_told(status(1, Phase::AwaitingReply), vec![ended_pod(1, 10, Some(asked_by_message()))], 11, "start 2")]
#[case::asked_and_not_told_yet(status(2, Phase::AwaitingReply), vec![ended_pod(2, 10, Some(asked_by_message()))], 11, "await")]
#[case::asked_and_still_there(status(1, Phase::AwaitingReply), vec![pod(1, "Running")], 11, "observe")]
#[case::asked_and_gone(status(1, Phase::AwaitingReply), vec![], 5000, "start 2")]
// Nobody knows which call: a worker tells it again.
#[case::held_and_not_told(status(1, Phase::AwaitingApproval), vec![ended_pod(1, 10, Some(held()))], 11, "start 2")]
#[case::held_and_not_told_yet(status(2, Phase::AwaitingApproval), vec![ended_pod(2, 10, Some(held()))], 11, "await")]
#[case::held_and_still_there(status(1, Phase::AwaitingApproval), vec![pod(1, "Running")], 11, "observe")]
#[case::held_and_gone(status(1, Phase::AwaitingApproval), vec![], 5000, "start 2")]
// Nobody can be asked of whom the operator never hears.
#[case::asked_in_vain_twice(untold(status(2, Phase::AwaitingReply), 2), vec![], 11, "start 3")]
#[case::asked_in_vain_again(untold(status(3, Phase::AwaitingReply), 3), vec![], 11, "end UserNeeded")]
#[case::held_in_vain_again(untold(status(3, Phase::AwaitingApproval), 3), vec![ended_pod(3, 10, Some(held()))], 11, "end UserNeeded")]
#[case::held_in_vain_and_still_there(untold(status(3, Phase::AwaitingApproval), 3), vec![pod(3, "Running")], 11, "observe")]
#[case::drained_in_vain(untold(status(3, Phase::Queued), 3), vec![], 11, "start 4")]
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
#[case::made_and_not_recorded(status(1, Phase::Running), vec![ended_pod(1, 10, None), pod(2, "Running")], 10, "start 2 silent=0")]
#[case::ended(status(1, Phase::Succeeded), vec![ended_pod(1, 10, None)], 10, "rest")]
fn what_is_done(#[case] status: JobStatus, #[case] pods: Vec<Pod>, #[case] now: i64, #[case] expected: &str) {
    assert_eq!(word(&act_at(now, &status, &pods)), expected);
}

#[test]
fn a_pause_that_was_written_down_lasts_whatever_becomes_of_the_pod() {
    let mut status = silent(status(2, Phase::Queued), 2);
    status.attempt.as_mut().unwrap().ended = Some(Time(at(10)));
    for pods in [vec![], vec![ended_pod(2, 10, None)]] {
        let held = decide_at(12, &status, &pods, false);
        assert_eq!((held.act, held.requeue_after), (Act::KeepPausing, Some(SignedDuration::from_secs(3))));
        assert_eq!(word(&act_at(15, &status, &pods)), "start 3 silent=2");
    }
}

#[test]
fn a_clock_ahead_does_not_lengthen_a_pause() {
    let decision = decide_at(10, &status(1, Phase::Running), &[ended_pod(1, 500, None)], false);
    let Act::Pause(lost) = decision.act else { panic!("{:?}", decision.act) };
    assert_eq!((lost.ended, decision.requeue_after), (at(10), Some(SignedDuration::from_secs(1))));
}

#[rstest]
#[case::ours_goes_on(Some(10), 10, 12, Some(3))]
#[case::the_pause_is_over(Some(10), 10, 15, None)]
#[case::the_node_is_ahead(Some(10), 500, 12, Some(3))]
#[case::ours_was_set_back(Some(10), 10, -3600, None)]
#[case::nobody_wrote_when(None, 10, 12, Some(3))]
fn the_pause_before_something_is_told_again(
    #[case] since: Option<i64>,
    #[case] ended: i64,
    #[case] now: i64,
    #[case] left: Option<i64>,
) {
    let mut status = status(2, Phase::AwaitingReply);
    let since = since.map(|since| Time(at(since)));
    status.waiting_for = Some(bloomery_crds::v1alpha1::WaitingFor { since, ..Default::default() });
    let told = message(2, PodEnd::Parked(ParkReason::Reply), None);
    let decision = decide_at(now, &status, &[ended_pod(2, ended, Some(told))], false);
    let expected = left.map_or_else(|| start(3), |_| Act::WaitForPeople(PeopleWait::AsRecorded));
    assert_eq!((decision.act, left.and(decision.requeue_after)), (expected, left.map(SignedDuration::from_secs)));
}

#[test]
fn a_job_that_nobody_can_be_asked_for_says_why() {
    let mut told_in_vain = untold(status(3, Phase::AwaitingApproval), 3);
    told_in_vain.log = Some(crate::job::fixtures::log(7));
    let Act::End(JobEnd { outcome, read_from: None }) = act_at(11, &told_in_vain, &[]) else { panic!("it ends") };
    let log = format!("jobs/{UID}");
    for part in
        ["a call waits for an approval", "3 consecutive attempts", &log, "kubectl logs refund-3-01234", "was not made"]
    {
        assert!(outcome.message.contains(part), "{part}: {}", outcome.message);
    }
    let Act::End(end) = act_at(11, &untold(status(3, Phase::AwaitingReply), 3), &[]) else { panic!("it ends") };
    assert!(end.outcome.message.starts_with("a question waits for an answer"), "{}", end.outcome.message);
}

#[test]
fn a_silent_node_never_gets_a_twin() {
    let mut lost = pod(1, "Running");
    lost.metadata.deletion_timestamp = Some(Time(at(60)));
    let decision = decide_at(1000, &status(1, Phase::Running), &[lost], false);
    assert_eq!(word(&decision.act), "NodeLost");
    assert!(decision.requeue_after.is_some());
}

#[test]
fn a_live_pod_without_its_labels_never_gets_a_twin() {
    let mut bare = pod(1, "Running");
    bare.metadata.labels = None;
    let decision = decide_at(1000, &status(1, Phase::Running), &[bare.clone()], false);
    assert_eq!((decision.act, decision.requeue_after), (Act::Observe(None), Some(SignedDuration::from_secs(60))));
    let mut mislabelled = pod(1, "Running");
    let labels = mislabelled.metadata.labels.as_mut().unwrap();
    labels.insert(bloomery_crds::names::LABEL_ATTEMPT.into(), "2".into());
    assert_eq!(act_at(1000, &status(1, Phase::Running), &[mislabelled]), Act::Observe(None));
    let labelled = decide_at(1000, &status(1, Phase::Running), &[pod(1, "Running")], false);
    assert_eq!(labelled.requeue_after, None, "changes of that one are told");
}

#[test]
fn a_live_pod_without_its_owner_never_gets_a_twin_and_still_goes_in_the_end() {
    let mut orphan = pod(1, "Running");
    orphan.metadata.owner_references = None;
    let decision = decide_at(1000, &status(1, Phase::Running), std::slice::from_ref(&orphan), false);
    assert_eq!((decision.act, decision.requeue_after), (Act::Observe(None), None), "its labels still tell of it");
    let mut ended = status(1, Phase::Succeeded);
    ended.completion_time = Some(Time(at(1000)));
    let deleted: Vec<String> =
        decide_at(1180, &ended, &[orphan], false).delete.into_iter().map(|pod| pod.uid).collect();
    assert_eq!(deleted, [pod_uid(1)]);
}

#[test]
fn a_worker_at_work_is_waited_for_where_the_skill_is_deleted() {
    let running = decide_at(5, &status(1, Phase::Running), &[pod(1, "Running")], true);
    assert_eq!((word(&running.act).as_str(), running.delete.len()), ("give up SkillDeleted", 0));
    assert_eq!(running.requeue_after, Some(SignedDuration::from_secs(25)));
    let told = ended_pod(1, 3, Some(message(1, PodEnd::Finished, Some(OutcomeCode::Succeeded))));
    assert_eq!(word(&decide_at(5, &status(1, Phase::Running), &[told], true).act), "end Succeeded by message");
}

#[test]
fn the_pod_of_a_held_job_is_kept_for_its_log_and_then_goes() {
    let held = status(1, Phase::AwaitingApproval);
    let kept = decide_at(609, &held, &[ended_pod(1, 10, None)], false);
    assert_eq!((kept.delete, kept.requeue_after), (vec![], Some(SignedDuration::from_secs(1))));
    let gone = decide_at(610, &held, &[ended_pod(1, 10, None)], false);
    assert_eq!(gone.delete, [doomed(1)]);
    let untold = decide_at(5000, &status(1, Phase::Running), &[ended_pod(1, 10, Some(self::held()))], false);
    assert_eq!(untold.delete, [], "what only the pod says is written down first");
    assert_eq!(word(&decide_at(11, &held, &[], true).act), "end SkillDeleted");
}

#[test]
fn a_pod_made_again_of_the_same_text_keeps_its_attempt() {
    let mut copy = pod(1, "Running");
    copy.metadata.uid = Some("copy".into());
    assert_eq!(act_at(5, &status(1, Phase::Running), &[copy]), Act::Observe(None));
}

fn terminal(code: OutcomeCode) -> JobStatus {
    let outcome = Outcome::new(code, "over");
    let mut status = status(1, outcome.phase());
    status.outcome = Some(outcome);
    status.completion_time = Some(Time(at(10)));
    status
}

#[rstest]
#[case::kept_for_its_log(OutcomeCode::Succeeded, ended_pod(1, 10, None), 609, false, Some(1))]
#[case::served_its_time(OutcomeCode::Succeeded, ended_pod(1, 10, None), 610, true, None)]
#[case::says_farewell(OutcomeCode::Succeeded, pod(1, "Running"), 20, false, Some(170))]
#[case::stays_too_long(OutcomeCode::Succeeded, pod(1, "Running"), 190, true, None)]
#[case::has_no_skill(OutcomeCode::SkillDeleted, pod(1, "Running"), 20, false, Some(170))]
fn pods_of_a_job_that_ended(
    #[case] code: OutcomeCode,
    #[case] pod: Pod,
    #[case] now: i64,
    #[case] deleted: bool,
    #[case] again: Option<i64>,
) {
    let decision = decide_at(now, &terminal(code), &[pod], false);
    let expected = deleted.then(|| doomed(1));
    assert_eq!(decision.act, Act::Idle);
    assert_eq!(decision.delete, Vec::from_iter(expected));
    assert_eq!(decision.requeue_after, again.map(SignedDuration::from_secs));
}

#[test]
fn pods_of_replaced_attempts_go_and_the_last_one_stays_while_it_is_needed() {
    let pods = [ended_pod(1, 10, None), ended_pod(2, 20, None)];
    let decision = decide_at(700, &status(2, Phase::Running), &pods, false);
    assert_eq!(decision.delete, [doomed(1)]);
    assert_eq!(word(&decision.act), "start 3 silent=0");
    let mut going = ended_pod(1, 10, None);
    going.metadata.deletion_timestamp = Some(Time(at(650)));
    assert_eq!(decide_at(700, &status(2, Phase::Running), &[going, pod(2, "Running")], false).delete, []);
}

#[test]
fn starting_is_looked_at_again_when_it_takes_long() {
    let again = |now| decide_at(now, &status(1, Phase::Starting), &[pod(1, "Pending")], false).requeue_after;
    assert_eq!(again(1), Some(SignedDuration::from_secs(4)));
    assert_eq!(again(5), Some(SignedDuration::from_secs(55)));
    assert_eq!(again(60), None);
    assert_eq!(act_at(0, &JobStatus::default(), &[]), start(1));
}

fn waits_with(pods: &[Pod], approvals: [Option<Approval>; 2], guard: PolicyState, now: i64) -> Plan {
    let status = status(1, Phase::AwaitingApproval);
    let pods = read(now, &status, pods);
    let call = held_call();
    let names = crate::approval::approval_names("refund", UID, &call);
    let asked = CallApprovals { approvals: names.into_iter().zip(approvals).collect(), call, policy: guard };
    decide(&Facts { call_approvals: Some(&asked), ..facts(now, &status, &pods) })
}

/// These have still to decide.
fn awaits(approvers: &[&str]) -> Act {
    let awaited = |approver: &&str| PendingDecision {
        approver: (*approver).to_owned(),
        approval: approval(approver).metadata.name.unwrap(),
    };
    Act::WaitForPeople(PeopleWait::Approvers(approvers.iter().map(awaited).collect()))
}

#[test]
fn a_job_waits_for_people_until_the_first_approval_expires_and_costs_nothing() {
    let open = || [Some(approval("supervisor")), Some(approval("finance"))];
    let waits = waits_with(&[], open(), policy_in_force(), 60);
    assert_eq!(
        (waits.act, waits.requeue_after),
        (awaits(&["supervisor", "finance"]), Some(SignedDuration::from_secs(24 * 3600 - 60)))
    );
    let one = [Some(counted(approval("supervisor"), ApprovalVerdict::Approve)), Some(approval("finance"))];
    assert_eq!(waits_with(&[], one, policy_in_force(), 60).act, awaits(&["finance"]));
    let missing = PolicyState::Missing("gone".into());
    assert_eq!(waits_with(&[], open(), missing, 60).act, Act::WaitForPeople(PeopleWait::PolicyMissing("gone".into())));
}

#[test]
fn a_decision_is_settled_first_and_then_the_next_attempt_starts() {
    let yes = ApprovalVerdict::Approve;
    let supervisor = decided(approval("supervisor"), yes);
    let name = supervisor.metadata.name.clone().unwrap();
    let settles = waits_with(&[], [Some(supervisor), Some(approval("finance"))], policy_in_force(), 60);
    assert_eq!(settles.act, Act::UpdateApprovals(vec![ApprovalUpdate::Count(name)]));
    let both = || [Some(counted(approval("supervisor"), yes)), Some(counted(approval("finance"), yes))];
    assert_eq!(waits_with(&[], both(), policy_in_force(), 60).act, start(2));
    assert_eq!(waits_with(&[ended_pod(1, 59, None)], both(), policy_in_force(), 60).act, start(2));
    // Never beside the pod before it.
    assert_eq!(waits_with(&[pod(1, "Running")], both(), policy_in_force(), 60).act, Act::Observe(None));
}

#[rstest]
#[case::set_back_after_it_was_asked(-3600)]
#[case::in_time(60)]
#[case::in_the_last_second(24 * 3600 - 1)]
fn a_decision_in_time_counts_whatever_the_clock_did_before(#[case] now: i64) {
    let yes = decided(approval("supervisor"), ApprovalVerdict::Approve);
    let name = yes.metadata.name.clone().unwrap();
    let settles = waits_with(&[], [Some(yes.clone()), Some(approval("finance"))], policy_in_force(), now);
    assert_eq!(settles.act, Act::UpdateApprovals(vec![ApprovalUpdate::Count(name)]));
    assert_eq!(crate::approval::evaluate::verdict_at(&yes.spec, at(now)), ApprovalVerdict::Approve);
}

#[test]
fn what_has_counted_stands_whatever_the_clock_does_then() {
    let both = || ["supervisor", "finance"].map(|of| Some(counted(approval(of), ApprovalVerdict::Approve)));
    for now in [-3600, 60, 24 * 3600, 1000 * 24 * 3600] {
        assert_eq!(waits_with(&[], both(), policy_in_force(), now).act, start(2), "{now}");
    }
    // Nobody is asked for longer than the Approval says, but for what the clock was set back by.
    let open = || [Some(approval("supervisor")), Some(approval("finance"))];
    let back = waits_with(&[], open(), policy_in_force(), -3600);
    assert_eq!(
        (back.act, back.requeue_after),
        (awaits(&["supervisor", "finance"]), Some(SignedDuration::from_secs(25 * 3600)))
    );
}

mod wanted;
