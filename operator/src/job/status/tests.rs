//! Tests of the status of a Job.

use super::*;
use crate::job::fixtures::{asked, at, held_call, job, log, message, pod_uid, revision, stamp, status};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{OutOfDomainAction, Usage, WaitingFor};
use rstest::rstest;

/// Computes the status of a Job without replies.
fn next(current: &JobStatus, applied: &AppliedPlan, stamp: &StatusStamp) -> JobStatus {
    compute(current, &JobSpec::default(), applied, stamp)
}

fn started(attempt: u32) -> StartedPod {
    StartedPod {
        pod: format!("refund-{attempt}-01234"),
        uid: pod_uid(attempt),
        attempt,
        revision: revision(),
        continued: None,
        approved_call: None,
        lowered_limits: Vec::new(),
        created: Some(Time(at(1))),
    }
}

fn lost(silent: u32) -> LostAttempt {
    LostAttempt {
        ended: at(30),
        silent,
        disrupted: 2,
        memory_fault: None,
        message: "the pod refund-1-01234 of attempt 1 vanished".into(),
    }
}

fn yaml(status: &JobStatus) -> String {
    serde_yaml::to_string(&serde_json::to_value(status).unwrap()).unwrap()
}

/// The status and the reason of a condition.
fn condition(status: &JobStatus, kind: ConditionType) -> (String, String) {
    let condition = conditions::find(&status.conditions, kind).unwrap();
    (condition.status.clone(), condition.reason.clone())
}

#[test]
fn the_first_started_pod_is_recorded() {
    insta::assert_snapshot!(yaml(&next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2))));
}

#[test]
fn a_further_attempt_keeps_the_log_and_the_start_time() {
    let mut before = status(1, Phase::Running);
    before.attempt.as_mut().unwrap().epoch = Some(1);
    before.log = Some(log(7));
    let after = next(&before, &AppliedPlan::Started(started(2), Some(lost(2))), &stamp(40));
    let attempt = after.attempt.as_ref().unwrap();
    assert_eq!((attempt.number, attempt.epoch, &attempt.ended), (2, Some(1), &None));
    assert_eq!((attempt.silent, attempt.disrupted), (Some(2), Some(2)));
    assert_eq!((after.start_time, after.log), (before.start_time, before.log));
}

#[test]
fn the_same_plan_does_not_change_the_status() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    let wait = AppliedPlan::Waiting(Wait::new(Reason::SkillNotFound, "no Skill"), None);
    let pending = next(&JobStatus::default(), &wait, &stamp(2));
    let paused = next(&begun, &AppliedPlan::Paused(lost(1)), &stamp(31));
    assert_eq!(next(&pending, &wait, &stamp(90)), pending);
    assert_eq!(next(&begun, &AppliedPlan::Observed(None), &stamp(90)), begun);
    assert_eq!(next(&paused, &AppliedPlan::Paused(LostAttempt { ended: at(99), ..lost(1) }), &stamp(90)), paused);
    assert_eq!(next(&JobStatus::default(), &AppliedPlan::Nothing, &stamp(1)), JobStatus::default());
}

#[test]
fn a_job_that_waits_is_pending_before_its_first_pod_and_queued_after_it() {
    let wait = AppliedPlan::Waiting(Wait::new(Reason::ModelNotFound, "make the Model default"), Some(lost(1)));
    let first = next(&JobStatus::default(), &wait, &stamp(1));
    assert_eq!(
        (first.phase, condition(&first, ConditionType::Reconciling).1.as_str()),
        (Some(Phase::Pending), "ModelNotFound")
    );
    let later = next(&status(1, Phase::Running), &wait, &stamp(40));
    let attempt = later.attempt.unwrap();
    assert_eq!((later.phase, attempt.ended, attempt.silent), (Some(Phase::Queued), Some(Time(at(30))), Some(1)));
}

#[test]
fn a_problem_of_the_pod_is_recorded_until_it_is_over() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    let problem = |reason, message: &str| Some(PodProblem { reason, message: message.into() });
    let stuck = next(&begun, &AppliedPlan::Observed(problem(Reason::ImageUnavailable, "ErrImagePull")), &stamp(9));
    assert_eq!(condition(&stuck, ConditionType::Reconciling).1, "ImageUnavailable");
    let again = next(&stuck, &AppliedPlan::Observed(problem(Reason::ImageUnavailable, "ImagePullBackOff")), &stamp(20));
    assert_eq!(again, stuck);
    assert_eq!(next(&stuck, &AppliedPlan::Observed(None), &stamp(2)), begun);
    // The report of a worker counts more than the state of its container.
    let running =
        next(&status(1, Phase::Running), &AppliedPlan::Observed(problem(Reason::PodNotStarting, "x")), &stamp(9));
    assert_eq!(running, status(1, Phase::Running));
    let lost = next(&status(1, Phase::Running), &AppliedPlan::Observed(problem(Reason::NodeLost, "gone")), &stamp(9));
    assert_eq!(condition(&lost, ConditionType::Reconciling).1, "NodeLost");
    let back = next(&lost, &AppliedPlan::Observed(None), &stamp(30));
    assert_eq!(
        (back.phase, condition(&back, ConditionType::Reconciling).1.as_str()),
        (Some(Phase::Running), "Running")
    );
}

#[test]
fn a_pod_that_waits_for_a_key_of_its_mcp_server_says_so_until_it_starts() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    let problem = PodProblem { reason: Reason::SecretMissing, message: "the key url of the Secret db".into() };
    let waits = next(&begun, &AppliedPlan::Observed(Some(problem)), &stamp(9));
    assert_eq!(condition(&waits, ConditionType::Reconciling).1, "SecretMissing");
    assert_eq!(next(&waits, &AppliedPlan::Observed(None), &stamp(2)), begun);
    // The wait of a worker is over when the worker says so.
    let worker_waits = JobStatus { phase: Some(Phase::Running), ..waits };
    assert_eq!(next(&worker_waits, &AppliedPlan::Observed(None), &stamp(9)), worker_waits);
}

#[test]
fn a_pod_in_a_queue_of_others_says_so_until_it_is_scheduled() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    let gated = PodProblem { reason: Reason::Queued, message: "its scheduling gates: kueue.x-k8s.io/admission".into() };
    let waits = next(&begun, &AppliedPlan::Observed(Some(gated)), &stamp(9));
    assert_eq!(
        (waits.phase, condition(&waits, ConditionType::Reconciling).1.as_str()),
        (Some(Phase::Starting), "Queued")
    );
    assert_eq!(next(&waits, &AppliedPlan::Observed(None), &stamp(2)), begun);
}

#[test]
fn a_message_that_differs_only_in_its_numbers_and_their_order_is_kept() {
    let begun = next(&JobStatus::default(), &AppliedPlan::Started(started(1), None), &stamp(2));
    let unschedulable = |message: &str| {
        AppliedPlan::Observed(Some(PodProblem { reason: Reason::Unschedulable, message: message.into() }))
    };
    let first = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {gpu: }.";
    let waits = next(&begun, &unschedulable(first), &stamp(9));
    let repeated = "0/5 nodes are available: 1 node(s) had untolerated taint {gpu: }, 4 Insufficient cpu.";
    assert_eq!(next(&waits, &unschedulable(repeated), &stamp(20)), waits);
    let other = next(&waits, &unschedulable("0/5 nodes are available: 5 Insufficient memory."), &stamp(30));
    assert!(is_same_wait(&waits, &other) && other != waits, "another cause is written");
    let wait = |reason, message: &str| {
        next(&JobStatus::default(), &AppliedPlan::Waiting(Wait::new(reason, message), None), &stamp(1))
    };
    let again = |current: &JobStatus, reason, message: &str| {
        next(current, &AppliedPlan::Waiting(Wait::new(reason, message), None), &stamp(60))
    };
    for reason in [Reason::Queued, Reason::QuotaExceeded] {
        let current = wait(reason, "2 of at most 2 Jobs");
        assert_eq!(again(&current, reason, "3 of at most 3 Jobs"), current);
    }
    let current = wait(Reason::SkillNotReady, "0 of 1 pods");
    assert_ne!(again(&current, Reason::SkillNotReady, "1 of 2 pods"), current, "the message of another reason");
}

#[test]
fn a_job_in_the_queue_is_queued_although_it_never_started() {
    let queued = Wait::new(Reason::Queued, "2 of at most 2 Jobs run");
    let queued = next(&JobStatus::default(), &AppliedPlan::Waiting(queued, None), &stamp(1));
    assert_eq!((queued.phase, queued.attempt.is_none()), (Some(Phase::Queued), true));
    assert_eq!(condition(&queued, ConditionType::Reconciling), ("True".into(), "Queued".into()));
}

#[test]
fn an_outcome_from_the_termination_message_is_recorded() {
    let termination = message(1, PodEnd::Finished, Some(OutcomeCode::GateFailed));
    let end = JobEnd { outcome: termination.outcome.clone().unwrap(), read_from: Some(Box::new(termination)) };
    insta::assert_snapshot!(yaml(&next(&status(1, Phase::Running), &AppliedPlan::Ended(end, None), &stamp(50))));
}

#[test]
fn an_older_termination_message_does_not_reset_the_log() {
    let termination = message(1, PodEnd::Finished, Some(OutcomeCode::GateFailed));
    let end = JobEnd { outcome: termination.outcome.clone().unwrap(), read_from: Some(Box::new(termination)) };
    let mut current = status(1, Phase::Running);
    current.attempt.as_mut().unwrap().epoch = Some(5);
    current.log = Some(log(12));
    current.usage = Some(Usage { tool_calls: 7, ..Usage::default() }.into());
    let ended = next(&current, &AppliedPlan::Ended(end, None), &stamp(50));
    assert_eq!((ended.log, ended.usage), (current.log, current.usage));
    assert_eq!(ended.attempt.unwrap().epoch, Some(5));
}

fn held() -> JobStatus {
    let mut current = status(1, Phase::AwaitingApproval);
    current.waiting_for = Some(
        WaitingFor {
            call: Some(held_call()),
            approvals: vec!["refund-a".into(), "refund-b".into()],
            ..WaitingFor::default()
        }
        .into(),
    );
    with_health(current.clone(), phase_health(&current), &stamp(40))
}

#[test]
fn a_held_call_from_the_termination_message_is_recorded() {
    let termination = message(1, PodEnd::Parked(ParkReason::Approval), None);
    let after = next(&status(1, Phase::Running), &AppliedPlan::Parked(Box::new(termination)), &stamp(50));
    insta::assert_snapshot!(yaml(&after));
    assert_eq!(next(&after, &AppliedPlan::Nothing, &stamp(90)), after);
}

#[test]
fn the_message_of_a_held_call_names_the_call_the_approvers_and_the_rules() {
    let held = held();
    assert_eq!(condition(&held, ConditionType::Ready), ("False".into(), "AwaitingApproval".into()));
    let message = &conditions::find(&held.conditions, ConditionType::Reconciling).unwrap().message;
    for word in ["c-7", "process_refund", "supervisor and finance", "amount > 500", "refund-a and refund-b"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
    let mut with_long_reason = held.clone();
    let call = with_long_reason.waiting_for.as_mut().unwrap().call.as_mut().unwrap();
    call.reason = "r".repeat(1024);
    let Health::Reconciling(_, message) = phase_health(&with_long_reason) else { panic!("it waits") };
    assert!(
        message.find("spec.decision").unwrap() < 1024,
        "the instruction comes before the part that may be truncated"
    );
}

#[test]
fn a_termination_message_without_the_question_makes_the_job_wait() {
    let message = message(1, PodEnd::Parked(ParkReason::Reply), None);
    let after = next(&status(1, Phase::Running), &AppliedPlan::Parked(Box::new(message)), &stamp(50));
    assert_eq!(
        (after.phase, condition(&after, ConditionType::Reconciling).1.as_str()),
        (Some(Phase::AwaitingReply), "AwaitingReply")
    );
    let lost = &conditions::find(&after.conditions, ConditionType::Reported).unwrap().message;
    assert!(lost.contains("its termination message says that a question is waiting"), "{lost}");
    assert_eq!(next(&after, &AppliedPlan::Nothing, &stamp(90)), after);
}

#[test]
fn questions_from_the_termination_message_are_recorded_like_reported_ones() {
    let mut message = message(1, PodEnd::Parked(ParkReason::Reply), None);
    message.questions = asked(0).questions;
    message.replies_heard = 2;
    let mut running = status(1, Phase::Running);
    running.replies_heard = Some(1);
    running.attempt.as_mut().unwrap().untold = Some(2);
    let after = next(&running, &AppliedPlan::Parked(Box::new(message.clone())), &stamp(50));
    assert_eq!(after.waiting_for, Some(asked(50).into()));
    assert_eq!((after.phase, after.replies_heard), (Some(Phase::AwaitingReply), Some(2)));
    assert_eq!(after.attempt.as_ref().unwrap().untold, None);
    let reconciling = &conditions::find(&after.conditions, ConditionType::Reconciling).unwrap().message;
    assert!(reconciling.contains("--question q-1"), "{reconciling}");
    assert_eq!(condition(&after, ConditionType::Reported), ("False".into(), "ReportLost".into()));
    // The number of received replies never decreases.
    running.replies_heard = Some(5);
    let after = next(&running, &AppliedPlan::Parked(Box::new(message)), &stamp(50));
    assert_eq!(after.replies_heard, Some(5));
}

#[test]
fn unreported_parkings_are_counted_across_attempts() {
    let parks = |end| AppliedPlan::Parked(Box::new(message(1, PodEnd::Parked(end), None)));
    let unreported = |status: &JobStatus| status.attempt.as_ref().unwrap().untold;
    let first = next(&status(1, Phase::Running), &parks(ParkReason::Reply), &stamp(50));
    let again = next(&first, &AppliedPlan::Started(started(2), None), &stamp(60));
    assert_eq!((unreported(&first), unreported(&again)), (Some(1), Some(1)));
    let second = next(&again, &parks(ParkReason::Approval), &stamp(70));
    assert_eq!(unreported(&second), Some(2));
}

#[test]
fn the_message_of_a_call_without_approvers_says_how_to_cancel_the_job() {
    let mut held = held();
    held.waiting_for.as_mut().unwrap().call.as_mut().unwrap().approvers = Vec::new();
    let Health::Reconciling(_, message) = phase_health(&held) else { panic!("it waits") };
    assert!(message.contains("kubectl bloomery cancel refund;"), "{message}");
}

#[test]
fn the_instruction_for_an_answer_comes_before_the_part_that_may_be_truncated() {
    let mut waiting_status = status(1, Phase::AwaitingReply);
    let mut waiting = asked(0);
    waiting.questions[0].text = "t".repeat(1024);
    waiting.questions[0].choices = vec!["c".repeat(128); 8];
    waiting.questions[0].refused = Some("it is empty".into());
    waiting_status.waiting_for = Some(waiting.into());
    let Health::Reconciling(_, message) = phase_health(&waiting_status) else { panic!("it waits") };
    for what in ["kubectl bloomery reply refund --question q-1", "spec.replies", "it is empty", "q-2"] {
        assert!(message.find(what).is_some_and(|at| at < 1024), "{what} is not in {message}");
    }
    // A Job with a running pod does not wait for people.
    let again = next(&waiting_status, &AppliedPlan::Started(started(2), None), &stamp(50));
    assert_eq!((again.phase, again.waiting_for.unwrap().since), (Some(Phase::Starting), None));
}

#[test]
fn a_job_that_ended_waits_for_nobody() {
    let end = JobEnd { outcome: Outcome::new(OutcomeCode::SkillDeleted, "the Skill was deleted"), read_from: None };
    let ended = next(&held(), &AppliedPlan::Ended(end, None), &stamp(50));
    assert_eq!((ended.phase, ended.waiting_for), (Some(Phase::Failed), None));
}

#[rstest]
#[case(Outcome::out_of_domain(OutOfDomainAction::Redirect, "orders only"), Phase::Refused, "OutOfDomain")]
#[case(Outcome::out_of_domain(OutOfDomainAction::Refuse, "orders only"), Phase::Refused, "OutOfDomain")]
#[case(Outcome::out_of_domain(OutOfDomainAction::Escalate, "orders only"), Phase::Escalated, "Escalated")]
#[case(Outcome::new(OutcomeCode::UserNeeded, "which order?"), Phase::Escalated, "Escalated")]
#[case(Outcome::new(OutcomeCode::Stuck, "no way on"), Phase::Failed, "Failed")]
fn an_unwanted_outcome_stalls_the_job(#[case] outcome: Outcome, #[case] phase: Phase, #[case] reason: &str) {
    let message = outcome.message.clone();
    let ended =
        next(&status(1, Phase::Running), &AppliedPlan::Ended(JobEnd { outcome, read_from: None }, None), &stamp(50));
    assert_eq!(ended.phase, Some(phase));
    assert_eq!(condition(&ended, ConditionType::Stalled), ("True".into(), reason.into()));
    let ready = &conditions::find(&ended.conditions, ConditionType::Ready).unwrap().message;
    assert!(ready.contains(&message), "{ready}");
}

#[test]
fn the_worker_s_remarks_stay_when_its_pod_changes() {
    let mut current = status(1, Phase::Running);
    let remarks = remarks_condition(&["The tool x is not offered.".to_owned()], false).unwrap();
    let strays = stray_replies_condition(&["reply 1 is to q-9".to_owned()]).unwrap();
    current.conditions = conditions::merge(&[], &[remarks, strays], Some(3), &Time(at(9)));
    let end = JobEnd { outcome: Outcome::new(OutcomeCode::Stuck, "no way on"), read_from: None };
    for applied in [AppliedPlan::Paused(lost(0)), AppliedPlan::Started(started(2), None), AppliedPlan::Ended(end, None)]
    {
        let after = next(&current, &applied, &stamp(50));
        assert_eq!(condition(&after, ConditionType::SkillAsWritten), ("False".into(), "Differs".into()), "{applied:?}");
        assert_eq!(
            condition(&after, ConditionType::RepliesTaken),
            ("False".into(), "UnknownQuestion".into()),
            "{applied:?}"
        );
    }
    assert_eq!(remarks_condition(&[], false), None);
}

#[test]
fn a_deleted_skill_stalls_the_job() {
    let end = JobEnd { outcome: Outcome::new(OutcomeCode::SkillDeleted, "the Skill was deleted"), read_from: None };
    let ended = next(&status(1, Phase::Running), &AppliedPlan::Ended(end, None), &stamp(50));
    assert_eq!(ended.phase, Some(Phase::Failed));
    assert_eq!(condition(&ended, ConditionType::Stalled), ("True".into(), "Failed".into()));
    assert_eq!(condition(&ended, ConditionType::Ready), ("False".into(), "Failed".into()));
    assert!(conditions::find(&ended.conditions, ConditionType::Reported).is_none());
    assert!(conditions::find(&ended.conditions, ConditionType::Reconciling).is_none());
}

#[test]
fn an_edit_updates_only_the_observed_generation() {
    let termination = message(1, PodEnd::Finished, Some(OutcomeCode::GateFailed));
    let end = JobEnd { outcome: termination.outcome.clone().unwrap(), read_from: Some(Box::new(termination)) };
    let ended = next(&status(1, Phase::Running), &AppliedPlan::Ended(end, None), &stamp(50));
    let edited = StatusStamp { generation: Some(4), ..stamp(70) };
    let seen = next(&ended, &AppliedPlan::Nothing, &edited);
    assert_eq!((seen.observed_generation, seen.conditions.len()), (Some(4), ended.conditions.len()));
    assert!(seen.conditions.iter().all(|condition| condition.observed_generation == Some(4)));
    assert_eq!(next(&seen, &AppliedPlan::Nothing, &edited), seen);
}

#[test]
fn a_change_of_the_message_alone_is_detected() {
    let wait = |reason, message: &str| {
        next(&JobStatus::default(), &AppliedPlan::Waiting(Wait::new(reason, message), None), &stamp(1))
    };
    let current = wait(Reason::SkillNotReady, "0 of 1 pods");
    assert!(is_same_wait(&current, &wait(Reason::SkillNotReady, "1 of 1 pods")));
    assert!(!is_same_wait(&current, &wait(Reason::ModelNotFound, "no Model")));
    assert!(!is_same_wait(&JobStatus::default(), &current));
    assert!(!is_same_wait(&current, &next(&current, &AppliedPlan::Started(started(1), None), &stamp(3))));
    assert_eq!(job().status, None);
}

#[test]
fn a_job_that_waits_for_its_children_names_each_and_what_it_waits_for() {
    let child = |name: &str, phase| ChildJob {
        skill: "reviewer".into(),
        name: Some(name.into()),
        phase: Some(phase),
        ..ChildJob::default()
    };
    let waits = status(1, Phase::AwaitingJob);
    let settled = ChildJob { settled: true, ..child("refund-0", Phase::Succeeded) };
    let requested = ChildJob { skill: "auditor".into(), ..ChildJob::default() };
    let children = vec![settled, child("refund-1", Phase::AwaitingReply), child("refund-2", Phase::Pending), requested];
    let after = with_children(waits.clone(), children.clone(), &stamp(9));
    let ready = conditions::find(&after.conditions, ConditionType::Ready).unwrap();
    assert_eq!(
        ready.message,
        "The Job refund-1 of the Skill reviewer waits for the answer to a question: kubectl bloomery get refund-1 shows it. \
         The Job refund-2 of the Skill reviewer has not ended: kubectl bloomery get refund-2 shows it. A Job of the Skill \
         auditor is not created yet."
    );
    assert_eq!(with_children(after.clone(), children.clone(), &stamp(99)), after);
    let running = with_children(status(1, Phase::Running), children, &stamp(9));
    assert_eq!((running.children.len(), running.conditions), (4, vec![]), "the conditions of its worker stay");
}

mod people;

#[test]
fn limits_above_those_of_the_skill_are_named_until_an_attempt_without_them() {
    let at_second = |second| StatusStamp { now: Time(at(second)), generation: Some(1) };
    let lowered_limits = vec!["spec.limits.steps is 90, and the Skill allows 80: 80 applies.".to_owned()];
    let first = StartedPod { lowered_limits, ..started(1) };
    let first = next(&JobStatus::default(), &AppliedPlan::Started(first, None), &at_second(1));
    let named = ("False".to_owned(), "AboveSkill".to_owned());
    assert_eq!(condition(&first, ConditionType::LimitsAsWritten), named);
    let paused = next(&first, &AppliedPlan::Paused(lost(0)), &at_second(2));
    assert_eq!(condition(&paused, ConditionType::LimitsAsWritten), named, "it stays");
    let end = JobEnd::decided(Outcome::new(OutcomeCode::StepLimit, "spent"));
    let ended = next(&paused, &AppliedPlan::Ended(end, None), &at_second(3));
    assert_eq!(condition(&ended, ConditionType::LimitsAsWritten), named, "it explains the end");
    let second = next(&paused, &AppliedPlan::Started(started(2), None), &at_second(4));
    assert!(conditions::find(&second.conditions, ConditionType::LimitsAsWritten).is_none());
}

#[test]
fn a_job_whose_worker_cannot_write_to_the_memory_says_so_until_a_report_arrives() {
    let fault = LostAttempt { memory_fault: Some("NotWritable: ask the admin.".into()), ..lost(0) };
    let paused = next(&status(1, Phase::Starting), &AppliedPlan::Paused(fault.clone()), &stamp(40));
    assert_eq!(paused.phase, Some(Phase::Queued));
    let reconciling = conditions::find(&paused.conditions, ConditionType::Reconciling).unwrap();
    assert_eq!(reconciling.reason, "NotWritable");
    assert_eq!(reconciling.message, "NotWritable: ask the admin. The Job tries again every 60 s");
    let fault_of = |status: &JobStatus| status.attempt.as_ref().unwrap().memory_fault.clone();
    assert_eq!(fault_of(&paused), fault.memory_fault);
}
