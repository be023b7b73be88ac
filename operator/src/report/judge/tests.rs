use super::*;
use crate::job::fixtures::{UID, job, pod_uid, report, status};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::JobResult;
use rstest::rstest;
use serde_json::{Map, Value, json};

fn caller(pod_uid: &str) -> Caller {
    Caller { namespace: "acme".into(), pod_uid: pod_uid.into() }
}

fn running(attempt: u32) -> Job {
    Job { status: Some(status(attempt, Phase::Running)), ..job() }
}

fn code(judgement: Judgement) -> u16 {
    match judgement {
        Judgement::Accepted => 200,
        Judgement::OtherPod(_) => 0,
        Judgement::Refused(refusal) => refusal.status().as_u16(),
    }
}

#[rstest]
#[case::recorded(Some(running(2)), caller(&pod_uid(2)), 200)]
#[case::other_pod(Some(running(2)), caller("another"), 0)]
#[case::not_recorded(Some(job()), caller(&pod_uid(2)), 409)]
#[case::ahead(Some(running(1)), caller(&pod_uid(2)), 409)]
#[case::behind(Some(running(3)), caller(&pod_uid(2)), 410)]
#[case::no_job(None, caller(&pod_uid(2)), 404)]
#[case::other_tenant(Some(running(2)), Caller { namespace: "other".into(), ..caller(&pod_uid(2)) }, 403)]
fn only_the_recorded_pod_may_report(#[case] job: Option<Job>, #[case] caller: Caller, #[case] expected: u16) {
    assert_eq!(code(judge(job.as_ref(), &caller, &report(2, 1, 3, Phase::Running))), expected);
}

#[test]
fn a_new_job_of_the_same_name_is_another_job() {
    let mut other = running(2);
    other.metadata.uid = Some("another".into());
    let judgement = judge(Some(&other), &caller(&pod_uid(2)), &report(2, 1, 3, Phase::Running));
    assert!(matches!(&judgement, Judgement::Refused(Refusal::NotFound(why)) if why.contains(UID)), "{judgement:?}");
}

#[test]
fn a_pod_that_is_not_recorded_yet_has_to_report_again() {
    let mut job = running(2);
    job.status.as_mut().unwrap().attempt.as_mut().unwrap().pod_uid = None;
    assert_eq!(code(judge(Some(&job), &caller(&pod_uid(2)), &report(2, 1, 3, Phase::Running))), 409);
}

#[rstest]
#[case::running(Phase::Running, None, None, true)]
#[case::ended(Phase::Succeeded, Some(OutcomeCode::Succeeded), Some(PodEnd::Finished), true)]
#[case::parked(Phase::Running, None, Some(PodEnd::Parked(ParkReason::Drain)), true)]
#[case::refused(Phase::Refused, Some(OutcomeCode::OutOfDomain), Some(PodEnd::Finished), true)]
#[case::held(Phase::AwaitingApproval, None, Some(PodEnd::Parked(ParkReason::Approval)), true)]
#[case::held_with_an_outcome(
    Phase::Escalated,
    Some(OutcomeCode::UserNeeded),
    Some(PodEnd::Parked(ParkReason::Approval)),
    false
)]
#[case::no_outcome(Phase::Succeeded, None, None, false)]
#[case::another_outcome(Phase::Succeeded, Some(OutcomeCode::GateFailed), None, false)]
#[case::early_outcome(Phase::Running, Some(OutcomeCode::Succeeded), None, false)]
#[case::finished_with_nothing(Phase::Running, None, Some(PodEnd::Finished), false)]
#[case::parked_with_an_outcome(
    Phase::Succeeded,
    Some(OutcomeCode::Succeeded),
    Some(PodEnd::Parked(ParkReason::Drain)),
    false
)]
fn a_report_that_contradicts_itself_is_refused(
    #[case] phase: Phase,
    #[case] code: Option<OutcomeCode>,
    #[case] end: Option<PodEnd>,
    #[case] fits: bool,
) {
    let mut report = report(1, 1, 1, phase);
    report.projection.outcome = code.map(|code| Outcome::new(code, "so"));
    report.end = end;
    assert_eq!(check_report(&report).is_ok(), fits);
    report.epoch = 0;
    assert!(check_report(&report).is_err());
}

#[test]
fn a_report_that_is_too_large_for_a_status_is_refused() {
    let mut report = report(1, 1, 1, Phase::Running);
    report.projection.remarks = vec!["r".repeat(257)];
    assert!(matches!(check_report(&report), Err(Refusal::Invalid(why)) if why.contains("a remark")));
}

#[rstest]
#[case::at_the_limit(MAX_DEPTH, true)]
#[case::beyond_the_limit(MAX_DEPTH + 1, false)]
fn fields_that_are_nested_too_deeply_are_refused(#[case] levels: usize, #[case] fits: bool) {
    // The object of the fields is one level, and each array is another one.
    let nested = (1..levels).fold(Value::Null, |inner, _| json!([inner]));
    let fields = Map::from_iter([("flat".to_owned(), json!("A-17")), ("order".to_owned(), nested)]);
    assert_eq!(depth(&Value::Object(fields.clone())), levels);
    let mut report = report(1, 1, 1, Phase::Running);
    report.projection.result = Some(JobResult { fields, ..JobResult::default() });
    let checked = check_report(&report);
    assert_eq!(checked.is_ok(), fits);
    if let Err(refusal) = checked {
        assert_eq!(refusal.status().as_u16(), 422);
        assert!(refusal.to_string().starts_with("projection.result.fields.order "), "{refusal}");
    }
}
