use super::*;
use crate::job::applied::AppliedPlan;
use crate::job::call_not_started;
use crate::job::fixtures::{asked, at, held_call, report, stamp, status};
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::{DetectedIntent, JobResult, JobSpec, ToolName, WaitingFor, WorkflowProgress};
use proptest::prelude::*;
use rstest::rstest;

/// The status after the operator applied a plan.
fn after_plan(current: &JobStatus, applied: &AppliedPlan) -> JobStatus {
    crate::job::status::compute(current, &JobSpec::default(), applied, &stamp(20))
}

fn apply(current: &JobStatus, report: &Report) -> JobStatus {
    match merge(current, report, &stamp(9)) {
        Merged::Unchanged | Merged::Conflict(_) => current.clone(),
        Merged::Urgent(status) | Merged::Deferrable(status) => *status,
    }
}

fn is_urgent_report(current: &JobStatus, report: &Report) -> bool {
    matches!(merge(current, report, &stamp(9)), Merged::Urgent(_))
}

/// The reason of the condition `Ready`.
fn reason(status: &JobStatus) -> String {
    conditions::find(&status.conditions, ConditionType::Ready).unwrap().reason.clone()
}

#[test]
fn the_first_report_of_an_attempt_is_urgent_and_the_next_is_deferrable() {
    let started = status(1, Phase::Starting);
    let first = report(1, 1, 3, Phase::Running);
    assert!(is_urgent_report(&started, &first));
    let running = apply(&started, &first);
    assert_eq!((running.phase, reason(&running).as_str()), (Some(Phase::Running), "Running"));
    assert_eq!(merge(&running, &first, &stamp(90)), Merged::Unchanged);
    let second = report(1, 1, 5, Phase::Finalizing);
    assert!(!is_urgent_report(&running, &second));
    assert_eq!(
        (acknowledged_events(&running, &second), acknowledged_events(&apply(&running, &second), &second)),
        (3, 5)
    );
}

#[test]
fn two_heads_or_held_calls_for_one_event_are_a_conflict() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let conflict = |current: &JobStatus, report: &Report| match merge(current, report, &stamp(9)) {
        Merged::Conflict(why) => why,
        other => format!("{other:?}"),
    };
    let mut other_head = report(1, 1, 3, Phase::Running);
    other_head.projection.log.head = bloomery_crds::Digest::of_bytes(b"forged");
    assert!(conflict(&running, &other_head).contains("another head of the log"));
    other_head.projection.log.events = 4;
    let ended = apply(&running, &report(1, 1, 4, Phase::Succeeded));
    assert!(conflict(&ended, &other_head).contains("another head of the log"), "also after the end of the Job");
    assert!(!conflict(&running, &other_head).contains("another"), "a later event");

    let held_call = held(7);
    let waits = apply(&running, &held_call);
    let mut other_call = held(7);
    other_call.projection.waiting_for.as_mut().unwrap().call.as_mut().unwrap().tool = "track_order".into();
    assert!(conflict(&waits, &other_call).contains("another held call"));
    let mut without_call = held(7);
    without_call.projection.waiting_for = None;
    assert!(conflict(&waits, &without_call).contains("no held call"));
    let secret = ExternalWait::McpUnavailable { message: "refused".into() };
    let still_waits = Report { waiting: Some(secret), ..held_call };
    assert!(!conflict(&waits, &still_waits).contains("another"), "`waiting` may change");
}

#[test]
fn a_call_that_people_were_asked_about_stays_on_record_until_the_job_ends() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let waits = apply(&running, &held(7));
    let asked: Vec<&str> = waits.asked_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(asked, [held(7).projection.waiting_for.unwrap().call.unwrap().id.as_str()]);

    let mut renamed = held(8);
    renamed.projection.waiting_for.as_mut().unwrap().call.as_mut().unwrap().tool = "track_order".into();
    assert!(
        matches!(merge(&waits, &renamed, &stamp(9)), Merged::Conflict(_)),
        "a later event does not change the call"
    );

    let goes_on = apply(&waits, &report(1, 1, 8, Phase::Running));
    assert_eq!((goes_on.waiting_for.as_ref(), &goes_on.asked_calls), (None, &waits.asked_calls));
    assert_eq!(apply(&goes_on, &report(1, 1, 9, Phase::Succeeded)).asked_calls, []);
}

#[test]
fn a_worker_that_parks_for_a_child_makes_the_job_wait_for_it() {
    let request: bloomery_crds::children::ChildRequest = serde_json::from_value(serde_json::json!({
        "call": "c-1", "digest": bloomery_crds::Digest::of_bytes(b""), "skill": "reviewer", "goal": "Review", "limits": {},
    }))
    .unwrap();
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let asks = Report { children: vec![request], ..report(1, 1, 5, Phase::Running) };
    assert!(is_urgent_report(&running, &asks), "the leader creates the child");
    let asked = apply(&running, &asks);
    assert_eq!((asked.phase, asked.children.len()), (Some(Phase::Running), 1));
    let parks = Report { end: Some(PodEnd::Parked(ParkReason::Children)), ..asks.clone() };
    assert!(is_urgent_report(&asked, &parks));
    let waits = apply(&asked, &parks);
    assert_eq!((waits.phase, reason(&waits).as_str()), (Some(Phase::AwaitingJob), "AwaitingJob"));
    assert!(!waits.awaits_people() && waits.waiting_for.is_none());
    let late = Report { end: None, ..parks.clone() };
    assert_eq!(apply(&waits, &late).phase, Some(Phase::AwaitingJob));
    // People decide on a call only after the child has ended, or the worker would park for them.
    let mut with_call = parks;
    (with_call.projection.waiting_for, with_call.projection.log) = (held(7).projection.waiting_for, log_at(7));
    let waits = apply(&asked, &with_call);
    assert_eq!((waits.asked_calls, waits.waiting_for.unwrap().since), (vec![], None));
    let ended = apply(&asked, &report(1, 1, 9, Phase::Succeeded));
    assert!(ended.children[0].settled && ended.children[0].request.is_none());
}

fn log_at(events: u64) -> LogPosition {
    report(1, 1, events, Phase::Running).projection.log
}

#[test]
fn a_report_resets_the_number_of_silent_attempts() {
    let mut started = status(3, Phase::Starting);
    started.attempt.as_mut().unwrap().silent = Some(2);
    assert_eq!(apply(&started, &report(3, 1, 3, Phase::Running)).attempt.unwrap().silent, None);
}

#[rstest]
#[case::claim_of_the_next_epoch(3, 10, Some(5))]
#[case::claims_of_two_epochs(4, 11, Some(5))]
#[case::progress(3, 11, None)]
#[case::progress_of_an_epoch_that_could_not_report(4, 12, None)]
fn progress_in_the_log_resets_the_number_of_disruptions(
    #[case] epoch: u64,
    #[case] events: u64,
    #[case] expected: Option<u32>,
) {
    let mut started = apply(&status(3, Phase::Starting), &report(3, 2, 9, Phase::Running));
    started.attempt.as_mut().unwrap().disrupted = Some(5);
    let reported = apply(&started, &report(3, epoch, events, Phase::Running));
    assert_eq!(reported.attempt.unwrap().disrupted, expected);
}

#[test]
fn only_a_final_report_resets_the_number_of_unreported_parkings() {
    let mut started = status(3, Phase::Starting);
    started.attempt.as_mut().unwrap().untold = Some(2);
    let running = apply(&started, &report(3, 1, 3, Phase::Running));
    assert_eq!(running.attempt.as_ref().unwrap().untold, Some(2));
    let parks = Report { attempt: 3, ..held(4) };
    assert_eq!(apply(&running, &parks).attempt.unwrap().untold, None);
}

#[test]
fn an_outcome_ends_the_job_and_stays() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let last = report(1, 1, 9, Phase::Succeeded);
    assert!(is_urgent_report(&running, &last));
    let ended = apply(&running, &last);
    assert_eq!((ended.phase, reason(&ended).as_str()), (Some(Phase::Succeeded), "Succeeded"));
    assert!(ended.completion_time.is_some());
    let other = report(1, 2, 12, Phase::Escalated);
    assert_eq!(merge(&ended, &other, &stamp(99)), Merged::Unchanged);
    // Nothing more is written for an ended Job, so the worker need not wait.
    assert_eq!(acknowledged_events(&ended, &other), 12);
}

#[test]
fn a_parked_job_is_queued_and_late_reports_do_not_change_that() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let mut parks = report(1, 1, 4, Phase::Running);
    parks.end = Some(PodEnd::Parked(ParkReason::Drain));
    assert!(is_urgent_report(&running, &parks));
    let parked = apply(&running, &parks);
    assert_eq!((parked.phase, reason(&parked).as_str()), (Some(Phase::Queued), "Parked"));
    for late in [parks, report(1, 1, 4, Phase::Running), report(1, 1, 6, Phase::Running)] {
        assert_eq!(apply(&parked, &late).phase, Some(Phase::Queued));
    }
    assert_eq!(apply(&parked, &report(1, 1, 6, Phase::Succeeded)).phase, Some(Phase::Succeeded));
}

/// A report of a worker that parks because a call is held.
fn held(events: u64) -> Report {
    let mut held = report(1, 1, events, Phase::AwaitingApproval);
    held.projection.waiting_for = Some(WaitingFor { call: Some(held_call()), ..WaitingFor::default() });
    held.end = Some(PodEnd::Parked(ParkReason::Approval));
    held
}

#[test]
fn a_held_call_makes_the_job_wait_and_late_reports_do_not_change_that() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    assert!(is_urgent_report(&running, &held(7)));
    let waiting = apply(&running, &held(7));
    assert_eq!((waiting.phase, reason(&waiting).as_str()), (Some(Phase::AwaitingApproval), "AwaitingApproval"));
    assert_eq!(waiting.waiting_for.as_ref().unwrap().call, Some(held_call()));
    assert!(conditions::is_true(&waiting.conditions, ConditionType::Reconciling));
    assert_eq!(merge(&waiting, &held(7), &stamp(99)), Merged::Unchanged);
    for late in [report(1, 1, 4, Phase::Running), report(1, 1, 9, Phase::Running)] {
        assert_eq!(apply(&waiting, &late).phase, Some(Phase::AwaitingApproval));
    }
    let names = waiting.waiting_for.as_ref().map(|waiting| waiting.approvals.len());
    assert_eq!(names, Some(2), "one for each approver");
    // The worker parked for a drain, or reports another phase: the Job waits for approval all the same.
    let mut drained = held(7);
    drained.end = Some(PodEnd::Parked(ParkReason::Drain));
    let mut by_end = held(7);
    by_end.projection.phase = Phase::Running;
    for report in [drained, by_end] {
        assert_eq!(apply(&running, &report).phase, Some(Phase::AwaitingApproval));
    }
}

#[test]
fn a_resumed_worker_runs_although_its_first_report_names_the_held_call() {
    let waiting = apply(&status(1, Phase::Running), &held(7));
    let resumed = JobStatus { phase: Some(Phase::Starting), ..waiting };
    let resumed = JobStatus { attempt: status(2, Phase::Starting).attempt, ..resumed };
    let mut first = report(2, 2, 8, Phase::AwaitingApproval);
    first.projection.waiting_for = held(7).projection.waiting_for;
    let begun = apply(&resumed, &first);
    assert_eq!((begun.phase, reason(&begun).as_str()), (Some(Phase::Running), "Running"));
    assert!(begun.waiting_for.is_some(), "a later attempt needs the call, too");
    assert_eq!(apply(&begun, &report(2, 2, 10, Phase::Running)).waiting_for, None);
}

#[test]
fn an_end_without_a_further_call_records_the_held_call_as_not_started() {
    let waiting = apply(&status(1, Phase::Running), &held(7));
    let resumed = JobStatus { phase: Some(Phase::Starting), attempt: status(2, Phase::Starting).attempt, ..waiting };
    let ended = |calls: u32| {
        let mut end = report(2, 2, 9, Phase::Failed);
        end.projection.usage.tool_calls = calls;
        apply(&resumed, &end)
    };
    let not_started = Some(call_not_started::record(&held_call()));
    assert_eq!(ended(7).call_not_started, not_started, "the worker had made seven calls when it parked");
    assert_eq!(ended(8).call_not_started, None, "the eighth call may be the held one");
}

/// A report of a worker that parks because questions are open.
fn asking(events: u64) -> Report {
    let mut asking = report(1, 1, events, Phase::AwaitingReply);
    asking.projection.waiting_for = Some(WaitingFor { since: None, ..asked(0) });
    asking.end = Some(PodEnd::Parked(ParkReason::Reply));
    asking
}

#[test]
fn a_question_makes_the_job_wait_and_late_reports_do_not_change_that() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    assert!(is_urgent_report(&running, &asking(7)));
    let waiting = apply(&running, &asking(7));
    assert_eq!((waiting.phase, reason(&waiting).as_str()), (Some(Phase::AwaitingReply), "AwaitingReply"));
    assert_eq!(waiting.waiting_for, Some(asked(9).into()));
    let message = &conditions::find(&waiting.conditions, ConditionType::Reconciling).unwrap().message;
    let expected = "q-1 asks \"Which order?\": answer with kubectl bloomery reply refund --question q-1 TEXT, or add it to \
        spec.replies of the Job; also open: q-2";
    assert_eq!(message, expected);
    assert_eq!(merge(&waiting, &asking(7), &stamp(99)), Merged::Unchanged, "the start of the wait stays");
    for late in [report(1, 1, 4, Phase::Running), report(1, 1, 9, Phase::Running)] {
        assert_eq!(apply(&waiting, &late).phase, Some(Phase::AwaitingReply));
    }
    // The worker parked for a drain, or reports another phase: the Job waits for the answer all the same.
    let mut drained = asking(7);
    drained.end = Some(PodEnd::Parked(ParkReason::Drain));
    let mut by_end = asking(7);
    by_end.projection.phase = Phase::Running;
    for report in [drained, by_end] {
        assert_eq!(apply(&running, &report).phase, Some(Phase::AwaitingReply));
    }
    // With a held call and a question, the phase is that of the call.
    let mut both = held(7);
    both.projection.waiting_for.as_mut().unwrap().questions = asked(0).questions;
    let both = apply(&running, &both);
    assert_eq!((both.phase, both.waiting_for.unwrap().questions.len()), (Some(Phase::AwaitingApproval), 2));
}

#[test]
fn a_job_that_asks_again_starts_a_new_wait() {
    let waiting = apply(&status(1, Phase::Running), &asking(7));
    let resumed = JobStatus { phase: Some(Phase::Starting), attempt: status(2, Phase::Starting).attempt, ..waiting };
    let mut first = asking(8);
    (first.attempt, first.epoch, first.end) = (2, 2, None);
    first.projection.replies_heard = 1;
    let begun = apply(&resumed, &first);
    assert_eq!((begun.phase, begun.replies_heard), (Some(Phase::Running), Some(1)));
    assert_eq!(begun.waiting_for.as_ref().unwrap().since, None, "it has a pod");
    let mut again = asking(9);
    (again.attempt, again.epoch) = (2, 2);
    let Merged::Urgent(again) = merge(&begun, &again, &stamp(500)) else { panic!("the report is urgent") };
    assert_eq!(again.waiting_for.unwrap().since, Some(Time(at(500))));
}

#[test]
fn a_stray_reply_is_a_condition_as_long_as_it_is_reported() {
    let stray = "reply 1 is to q-9, which nobody has asked: \"A-17\"";
    let mut strays = asking(7);
    strays.projection.stray_replies = vec![stray.to_owned()];
    let merged = apply(&status(1, Phase::Running), &strays);
    let condition = conditions::find(&merged.conditions, ConditionType::RepliesTaken).unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str(), condition.message.as_str()),
        ("False", "UnknownQuestion", format!("{stray}.").as_str())
    );
    let later = apply(&status(1, Phase::Running), &asking(8));
    assert_eq!(conditions::find(&later.conditions, ConditionType::RepliesTaken), None);
}

#[test]
fn the_status_holds_every_field_of_the_projection() {
    let mut full = held(7);
    full.projection.gates.intent = Some(DetectedIntent {
        id: Some("refund".into()),
        entities: serde_json::from_value(serde_json::json!({ "order_id": "A-17" })).unwrap(),
        out_of_domain: false,
    });
    full.projection.gates.pre_tool.held = 1;
    full.projection.tool_names =
        vec![ToolName { tool: "orders.refund".into(), alias: "orders_refund-0a1b2c3d".into() }];
    full.projection.workflows = vec![WorkflowProgress {
        name: "refund".into(),
        required: true,
        done: vec!["verify_identity".into()],
        not_applicable: vec!["check_stock".into()],
        open: vec!["process_refund".into()],
    }];
    full.projection.remarks = vec![
        "The guardrail \"Never use deleteFile\" names no tool: the model is asked to keep it.".into(),
        "The server's schema of process_refund has no argument amount.".into(),
    ];
    full.projection.result = Some(JobResult { text: "Done.".into(), polished: true, ..JobResult::default() });
    let merged = apply(&status(1, Phase::Starting), &full);
    insta::assert_snapshot!(serde_yaml::to_string(&serde_json::to_value(merged).unwrap()).unwrap());
}

#[test]
fn a_remark_that_is_no_longer_reported_has_no_condition() {
    let mut remarks = report(1, 1, 3, Phase::Running);
    remarks.projection.remarks = vec!["x differs.".into()];
    let merged = apply(&status(1, Phase::Starting), &remarks);
    let condition = conditions::find(&merged.conditions, ConditionType::SkillAsWritten).unwrap();
    assert_eq!((condition.status.as_str(), condition.message.as_str()), ("False", "x differs."));
    let later = apply(&merged, &report(1, 1, 4, Phase::Running));
    assert_eq!(conditions::find(&later.conditions, ConditionType::SkillAsWritten), None);
    let mut last = report(1, 1, 5, Phase::Succeeded);
    last.projection.remarks = vec!["y differs.".into()];
    let ended = apply(&later, &last);
    assert!(conditions::find(&ended.conditions, ConditionType::SkillAsWritten).is_some());
}

#[test]
fn the_start_and_the_end_of_an_external_wait_are_urgent() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let mut waits = report(1, 1, 3, Phase::Running);
    waits.waiting = Some(ExternalWait::SecretMissing { name: "llm".into(), key: "token".into(), until: None });
    assert!(is_urgent_report(&running, &waits));
    let waiting = apply(&running, &waits);
    assert_eq!(reason(&waiting), "SecretMissing");
    let key = |status: &JobStatus| status.attempt.clone().unwrap().waiting_for_key;
    assert_eq!(key(&waiting), Some(SecretKeyRef { name: "llm".into(), key: "token".into() }));
    assert_eq!(merge(&waiting, &waits, &stamp(99)), Merged::Unchanged);
    let resumed = report(1, 1, 3, Phase::Running);
    assert!(is_urgent_report(&waiting, &resumed));
    let running = apply(&waiting, &resumed);
    assert_eq!((reason(&running).as_str(), key(&running)), ("Running", None));
    let ended = apply(&waiting, &report(1, 1, 4, Phase::Failed));
    assert_eq!(key(&ended), None);
}

#[test]
fn a_report_shows_that_the_worker_can_write_to_the_memory_again() {
    let mut faulty = status(2, Phase::Starting);
    faulty.attempt.as_mut().unwrap().memory_fault = Some("NotWritable".into());
    assert_eq!(apply(&faulty, &report(2, 1, 1, Phase::Running)).attempt.unwrap().memory_fault, None);
}

#[test]
fn the_message_about_a_missing_key_says_until_when_the_worker_waits() {
    let mut waits = report(1, 1, 3, Phase::Running);
    for (until, expected) in [
        (Some(at(60).as_second()), format!(" until {} for the key token", at(60))),
        (Some(i64::MAX), " waits for the key token".to_owned()),
    ] {
        waits.waiting = Some(ExternalWait::SecretMissing { name: "llm".into(), key: "token".into(), until });
        let waiting = apply(&status(1, Phase::Starting), &waits);
        let message = &conditions::find(&waiting.conditions, ConditionType::Ready).unwrap().message;
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn reports_of_superseded_workers_and_other_attempts_are_ignored() {
    let running = apply(&status(2, Phase::Starting), &report(2, 2, 5, Phase::Running));
    let mut superseded = report(2, 2, 6, Phase::Running);
    superseded.end = Some(PodEnd::Superseded);
    for report in [superseded, report(1, 3, 9, Phase::Succeeded), report(3, 3, 9, Phase::Succeeded)] {
        assert_eq!(merge(&running, &report, &stamp(9)), Merged::Unchanged);
    }
    assert_eq!(merge(&JobStatus::default(), &report(1, 1, 1, Phase::Running), &stamp(9)), Merged::Unchanged);
}

#[test]
fn a_log_that_lost_events_is_ignored() {
    let running = apply(&status(2, Phase::Starting), &report(2, 2, 5, Phase::Running));
    let lossy = report(2, 3, 4, Phase::Running);
    assert_eq!(merge(&running, &lossy, &stamp(9)), Merged::Unchanged);
    assert_eq!(acknowledged_events(&running, &lossy), 5);
}

/// Reports of one attempt at distinct positions in its log. The last one may carry the outcome.
fn reports() -> impl Strategy<Value = Vec<Report>> {
    let places = prop::collection::btree_set((1_u64..4, 1_u64..30), 1..8);
    let sorted = places.prop_map(|places| {
        // A log grows: later epochs have more events.
        places.into_iter().map(|(epoch, events)| (epoch, epoch * 100 + events)).collect::<Vec<_>>()
    });
    let last_phases =
        prop::sample::select(vec![Phase::Running, Phase::Succeeded, Phase::AwaitingApproval, Phase::AwaitingReply]);
    (sorted, last_phases, prop::collection::vec(any::<bool>(), 8)).prop_map(|(places, last_phase, finalizing)| {
        let last = places.len() - 1;
        let phase = |at: usize| match finalizing[at] {
            _ if at == last => last_phase,
            true => Phase::Finalizing,
            false => Phase::Running,
        };
        places.iter().enumerate().map(|(at, (epoch, events))| report(2, *epoch, *events, phase(at))).collect()
    })
}

/// The position of a status in the order of reports.
fn rank(status: &JobStatus) -> (bool, u64, u64) {
    let epoch = status.attempt.as_ref().and_then(|attempt| attempt.epoch).unwrap_or(0);
    (status.is_terminal(), epoch, status.log.as_ref().map_or(0, |log| log.events))
}

proptest! {
    #[test]
    fn order_and_repetition_of_reports_do_not_matter(
        (reports, order) in reports().prop_flat_map(|reports| {
            let twice: Vec<Report> = reports.iter().chain(&reports).cloned().collect();
            (Just(reports), Just(twice).prop_shuffle())
        }),
    ) {
        let start = status(2, Phase::Starting);
        let in_order = reports.iter().fold(start.clone(), |status, report| apply(&status, report));
        let mut shuffled = start;
        for report in &order {
            let next = apply(&shuffled, report);
            prop_assert!(rank(&next) >= rank(&shuffled), "never backwards");
            shuffled = next;
        }
        prop_assert_eq!(shuffled, in_order);
    }
}

#[rstest]
#[case::cancelled(EndCause::Cancelled, "Cancelling")]
#[case::without_its_skill(EndCause::SkillDeleted, "SkillDeleted")]
fn a_report_does_not_replace_the_health_of_an_ending_job(#[case] cause: EndCause, #[case] reason: &str) {
    let current = after_plan(&status(1, Phase::Running), &AppliedPlan::AwaitsPodEnd(cause, None));
    let reconciling = |status: &JobStatus| {
        let condition = conditions::find(&status.conditions, ConditionType::Reconciling).unwrap();
        (condition.reason.clone(), condition.message.clone())
    };
    assert_eq!(reconciling(&current).0, reason);
    for phase in [Phase::Running, Phase::Finalizing] {
        let merged = merge(&current, &report(1, 1, 9, phase), &stamp(25));
        let (Merged::Urgent(merged) | Merged::Deferrable(merged)) = merged else { panic!("{merged:?}") };
        assert_eq!(reconciling(&merged), reconciling(&current));
    }
    let mut over = report(1, 1, 9, Phase::Cancelled);
    over.projection.outcome = Some(Outcome::new(OutcomeCode::Cancelled, "The Job was cancelled."));
    let Merged::Urgent(merged) = merge(&current, &over, &stamp(25)) else { panic!("an end is urgent") };
    assert_eq!(
        (merged.phase, conditions::find(&merged.conditions, ConditionType::Reconciling)),
        (Some(Phase::Cancelled), None)
    );
    assert!(conditions::is_true(&merged.conditions, ConditionType::Ready));
}

#[test]
fn a_report_without_new_events_does_not_end_the_loss_of_the_node() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let problem =
        crate::job::pods::PodProblem { reason: Reason::NodeLost, message: "the node n does not answer".into() };
    let lost = after_plan(&running, &AppliedPlan::Observed(Some(problem)));
    assert_eq!(reason(&lost), "NodeLost");
    assert_eq!(merge(&lost, &report(1, 1, 3, Phase::Running), &stamp(25)), Merged::Unchanged);
    assert_eq!(reason(&apply(&lost, &report(1, 1, 4, Phase::Running))), "Running");
}
