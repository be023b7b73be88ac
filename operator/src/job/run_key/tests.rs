use super::*;
use crate::job::fixtures::{self, at, pod, status};
use bloomery_crds::outcome::Phase;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

/// A Job with the key, created at this second.
fn job_at(name: &str, seconds: i64) -> Job {
    let mut job = fixtures::job();
    job.metadata.name = Some(name.into());
    job.metadata.uid = Some(format!("{name}-uid"));
    job.metadata.creation_timestamp = Some(Time(at(seconds)));
    job.spec.run_key = Some("nightly".into());
    job
}

/// The status of a Job that waits after an attempt with this pod.
fn started(pod: &str) -> JobStatus {
    let mut started = status(1, Phase::AwaitingApproval);
    started.attempt.as_mut().unwrap().pod = pod.into();
    started
}

#[rstest]
#[case::older(|_: &mut Job| (), true)]
#[case::younger(|other: &mut Job| other.metadata.creation_timestamp = Some(Time(at(9))), false)]
#[case::younger_and_started(|other: &mut Job| {
    other.metadata.creation_timestamp = Some(Time(at(9)));
    other.status = Some(started("other-1-other"));
}, true)]
#[case::younger_and_restored_with_an_old_status(|other: &mut Job| {
    other.metadata.creation_timestamp = Some(Time(at(9)));
    other.status = Some(started("other-1-01234"));
}, false)]
#[case::ended(|other: &mut Job| other.status = Some(status(1, Phase::Succeeded)), false)]
#[case::another_skill(|other: &mut Job| other.spec.skill = "cs-tier-2".into(), false)]
#[case::another_key(|other: &mut Job| other.spec.run_key = Some("weekly".into()), false)]
#[case::no_key(|other: &mut Job| other.spec.run_key = None, false)]
#[case::the_key_is_its_uid(|other: &mut Job| {
    other.spec.run_key = None;
    other.metadata.uid = Some("nightly".into());
}, true)]
#[case::itself(|other: &mut Job| other.metadata.uid = Some("refund-uid".into()), false)]
fn a_key_is_in_use_by_a_started_or_older_unfinished_job_of_the_skill(
    #[case] change: fn(&mut Job),
    #[case] is_in_use: bool,
) {
    let mut other = job_at("other", 3);
    change(&mut other);
    assert_eq!(holds_key_of(&other, &job_at("refund", 5)), is_in_use);
}

/// Of any number of Jobs with one key, exactly one may start.
#[test]
fn of_jobs_that_were_created_at_the_same_time_one_starts() {
    let jobs: Vec<Job> = ["a", "b", "c"].iter().map(|name| job_at(name, 5)).collect();
    let waits = |job: &Job| jobs.iter().any(|other| holds_key_of(other, job));
    assert_eq!(jobs.iter().filter(|job| !waits(job)).count(), 1);
}

#[rstest]
#[case::of_a_deleted_job("gone-uid", Some("nightly"), "Running", true)]
#[case::its_uid_is_the_key("nightly", None, "Running", true)]
#[case::ended("gone-uid", Some("nightly"), "Succeeded", false)]
#[case::another_key("gone-uid", Some("weekly"), "Running", false)]
#[case::no_key("gone-uid", None, "Running", false)]
#[case::its_own("refund-uid", Some("nightly"), "Running", false)]
fn a_pod_of_another_job_holds_its_key_until_it_ends(
    #[case] owner: &str,
    #[case] label: Option<&str>,
    #[case] phase: &str,
    #[case] holds: bool,
) {
    let mut pod = pod(1, phase);
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = owner.into();
    let labels = pod.metadata.labels.as_mut().unwrap();
    labels.insert(names::LABEL_SKILL.into(), "cs-tier-1".into());
    labels.extend(label.map(|label| (names::LABEL_RUN_KEY.to_owned(), label.to_owned())));
    assert_eq!(holds_key(&pod, "nightly", &job_at("refund", 5)), holds);
}

#[test]
fn a_restored_job_waits_until_it_has_a_key() {
    let mut job = fixtures::job();
    assert_eq!(restored_wait(&job), None);
    job.metadata.labels = Some([(names::LABEL_RESTORED.to_owned(), "monday".to_owned())].into());
    let wait = restored_wait(&job).unwrap();
    assert_eq!((wait.reason, wait.retry), (Reason::RestoredWithoutRunKey, None));
    assert!(wait.message.contains("monday") && wait.message.contains("spec.runKey"), "{}", wait.message);
}
