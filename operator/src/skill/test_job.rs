//! The Job that tests the features of a new revision (`engine.validation.onChange`).
//!
//! Its name contains the digest of the revision, so each revision has at most one. The Job controller ends it if it has not started when the
//! Skill has another revision.

use crate::context::Context;
use crate::error::Error;
use crate::owned;
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason, is_true};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{
    FeatureStatus, Job, JobMode, JobSpec, JobStatus, Limits, RevisionRef, Skill, SkillStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::core::ResourceExt;

/// The age of a revision at which its features are tested. A Skill that changes again meanwhile costs no test.
pub const DEBOUNCE: SignedDuration = SignedDuration::from_secs(10);

/// The time from the end of the Job to its deletion, in seconds. Until then, the results of a revision are known if the Skill returns to it.
const TTL_SECONDS: i64 = 7 * 24 * 60 * 60;

/// The Job that tests the current revision of a Skill.
#[derive(Debug, Default, PartialEq)]
pub enum TestJob {
    /// There is none, or the Skill does not need it.
    #[default]
    Absent,
    /// It has not ended.
    Unfinished,
    /// It has ended. Holds its results, if the status of the Skill lacks some.
    Ended(Vec<FeatureStatus>),
}

/// The next step for a revision.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    Create,
    DecideAfter(SignedDuration),
}

/// Returns whether the operator tests each new revision of a Skill.
pub fn is_wanted(skill: &Skill) -> bool {
    skill.spec.validation().is_some_and(|validation| validation.on_change == Some(true))
}

/// Reads the Job of a revision from the cache, and its results from the API server, because the cache does not keep them.
///
/// # Errors
/// If the results cannot be read.
pub async fn fetch(skill: &Skill, revision: &RevisionRef, context: &Context) -> Result<TestJob, Error> {
    if !is_wanted(skill) {
        return Ok(TestJob::Absent);
    }
    let (namespace, name) = (skill.namespace().unwrap_or_default(), name_of(skill, revision));
    let Some(cached) = context.caches.jobs.get(&namespace, &name) else { return Ok(TestJob::Absent) };
    if !cached.0.as_ref().is_ok_and(has_ended) {
        return Ok(TestJob::Unfinished);
    }
    if has_all_results(skill, revision) {
        return Ok(TestJob::Ended(Vec::new()));
    }
    let api: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    let stored = api.get_opt(&name).await.map_err(Error::api(format!("read Job {namespace}/{name}")))?;
    Ok(stored.map_or(TestJob::Absent, |job| TestJob::Ended(results(&job))))
}

/// Creates the Job of a revision, if it is time. Returns when to decide again. `status` is the computed status of the Skill, and `created` the
/// time at which the revision was created, if the cache shows it.
///
/// # Errors
/// If the API server does not create the Job.
pub async fn run(
    skill: &Skill,
    (status, revision, created): (&SkillStatus, &RevisionRef, Option<&Time>),
    state: &TestJob,
    context: &Context,
) -> Result<Option<SignedDuration>, Error> {
    match decide(skill, status, created, state, Timestamp::now()) {
        Next::Nothing => return Ok(None),
        Next::DecideAfter(delay) => return Ok(Some(delay)),
        Next::Create => {}
    }
    let Some(job) = build(skill, revision) else { return Ok(None) };
    let (namespace, name) = (skill.namespace().unwrap_or_default(), job.name_any());
    let api: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    context.metrics.count_write("Job", "create");
    match api.create(&owned::post_params(), &job).await {
        Ok(_) => tracing::info!(namespace, job = name, "created a Job that tests the features of a revision"),
        // The cache does not show it yet.
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {}
        Err(error) => return Err(Error::api(format!("create Job {namespace}/{name}"))(error)),
    }
    Ok(None)
}

/// Returns whether this is the name of the Job that tests the current revision of a Skill.
pub fn is_of_current(skill: &Skill, job: &str) -> bool {
    let current = skill.status.as_ref().and_then(|status| status.revision.as_ref());
    current.is_some_and(|revision| name_of(skill, revision) == job)
}

/// Returns the name of the Job of a revision.
pub fn name_of(skill: &Skill, revision: &RevisionRef) -> String {
    names::validation_job(&skill.name_any(), &revision.digest)
}

fn decide(skill: &Skill, status: &SkillStatus, created: Option<&Time>, state: &TestJob, now: Timestamp) -> Next {
    let is_tested = reason_of(&status.conditions, ConditionType::Validated) != Some(Reason::NotValidated);
    let is_ready = is_true(&status.conditions, ConditionType::Ready);
    if !is_wanted(skill) || is_tested || !is_ready || *state != TestJob::Absent {
        return Next::Nothing;
    }
    // The cache does not show a revision that was created just now.
    let age = created.map_or(SignedDuration::ZERO, |created| now.duration_since(created.0));
    if age < DEBOUNCE { Next::DecideAfter((DEBOUNCE - age).min(DEBOUNCE)) } else { Next::Create }
}

fn build(skill: &Skill, revision: &RevisionRef) -> Option<Job> {
    let tokens = skill.spec.validation()?.tokens;
    let spec = JobSpec {
        skill: skill.name_any(),
        goal: format!("Test the features of the revision {}", revision.name),
        mode: Some(JobMode::Validate),
        limits: tokens.map(|tokens| Limits { tokens: Some(tokens), ..Limits::default() }),
        ttl_seconds_after_finished: Some(TTL_SECONDS),
        ..JobSpec::default()
    };
    let mut job = Job::new(&name_of(skill, revision), spec);
    let mut labels = owned::labels("validation");
    labels.insert(names::LABEL_SKILL.to_owned(), skill.name_any());
    job.metadata.labels = Some(labels);
    job.metadata.namespace = skill.namespace();
    job.metadata.owner_references = Some(vec![owned::owner_reference(skill)?]);
    Some(job)
}

fn has_ended(job: &Job) -> bool {
    job.status.as_ref().is_some_and(JobStatus::is_terminal)
}

fn has_all_results(skill: &Skill, revision: &RevisionRef) -> bool {
    let recorded = skill.status.as_ref().map_or(&[][..], |status| &status.features);
    let has_result = |name: &str| recorded.iter().any(|result| result.name == name && result.revision == revision.name);
    skill.spec.tested_features().all(|feature| has_result(&feature.name))
}

/// Returns the results of a Job that has ended, with the revision that it has tested.
fn results(job: &Job) -> Vec<FeatureStatus> {
    let Some(status) = job.status.as_ref().filter(|_| job.spec.validates()) else { return Vec::new() };
    let (Some(revision), Some(time)) = (&status.skill_revision, &status.completion_time) else { return Vec::new() };
    let name = job.name_any();
    status
        .features
        .iter()
        .map(|result| FeatureStatus::new(result.clone(), &revision.name, &name, time.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;
    use bloomery_crds::Digest;
    use rstest::rstest;
    use serde_json::json;

    const REVISION: &str = "orders-2";

    fn revision() -> RevisionRef {
        RevisionRef { name: REVISION.into(), digest: Digest::of_bytes(b"2") }
    }

    /// Returns a Skill with a feature whose revisions the operator tests.
    fn skill() -> Skill {
        let mut skill = fixtures::without_server();
        let features = json!([{"name": "greets", "testScenario": "x", "expectedResult": "y"}]);
        skill.spec.features = serde_json::from_value(features).unwrap();
        let engine = json!({"validation": {"onChange": true, "runs": 3, "tokens": 9000, "requireFor": "run"}});
        skill.spec.engine = serde_json::from_value(engine).unwrap();
        skill
    }

    fn status(ready: &str, validated: &str) -> SkillStatus {
        let condition = |kind: &str, status: &str, reason: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions = [condition("Ready", ready, "Ready"), condition("Validated", "Unknown", validated)];
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    }

    #[rstest]
    #[case::stable(10, "True", "NotValidated", TestJob::Absent, Next::Create)]
    #[case::changed_just_now(
        3,
        "True",
        "NotValidated",
        TestJob::Absent,
        Next::DecideAfter(SignedDuration::from_secs(7))
    )]
    #[case::a_clock_that_is_behind(-5, "True", "NotValidated", TestJob::Absent, Next::DecideAfter(DEBOUNCE))]
    #[case::not_ready(10, "False", "NotValidated", TestJob::Absent, Next::Nothing)]
    #[case::passed(10, "True", "FeaturesPassed", TestJob::Absent, Next::Nothing)]
    #[case::failed(10, "True", "FeatureFailed", TestJob::Absent, Next::Nothing)]
    #[case::at_work(10, "True", "NotValidated", TestJob::Unfinished, Next::Nothing)]
    #[case::ended_without_results(10, "True", "NotValidated", TestJob::Ended(Vec::new()), Next::Nothing)]
    fn a_revision_is_tested_once_it_is_stable(
        #[case] age: i64,
        #[case] ready: &str,
        #[case] validated: &str,
        #[case] state: TestJob,
        #[case] expected: Next,
    ) {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let created = Time(Timestamp::from_second(1_000_000 - age).unwrap());
        let status = status(ready, validated);
        assert_eq!(decide(&skill(), &status, Some(&created), &state, now), expected);
        assert_eq!(decide(&fixtures::without_server(), &status, Some(&created), &state, now), Next::Nothing);
    }

    #[test]
    fn a_revision_that_the_cache_does_not_show_is_new() {
        let status = status("True", "NotValidated");
        let next = decide(&skill(), &status, None, &TestJob::Absent, Timestamp::UNIX_EPOCH);
        assert_eq!(next, Next::DecideAfter(DEBOUNCE));
    }

    #[test]
    fn the_job_has_the_budget_of_the_skill_and_belongs_to_it() {
        let job = build(&skill(), &revision()).unwrap();
        assert_eq!(job.name_any(), names::validation_job("orders", &revision().digest));
        assert!(job.spec.validates() && owned::is_owned_by(&job.metadata, "u-skill"));
        assert_eq!(job.spec.limits.and_then(|limits| limits.tokens), Some(9000));
        assert_eq!((job.spec.skill.as_str(), job.spec.resources.len()), ("orders", 0));
    }

    #[test]
    fn the_results_of_a_job_name_the_revision_that_it_has_tested() {
        let mut job = build(&skill(), &revision()).unwrap();
        assert!(results(&job).is_empty());
        let status = json!({
            "phase": "Succeeded", "completionTime": "2026-01-01T00:00:00Z", "skillRevision": revision(),
            "features": [{"name": "greets", "passed": true, "tokens": 7, "seconds": 1}],
        });
        job.status = serde_json::from_value(status).unwrap();
        let found = results(&job);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].revision.as_str(), found[0].job == job.name_any(), found[0].passed),
            (REVISION, true, true)
        );
        let mut tested = skill();
        assert!(!has_all_results(&tested, &revision()));
        tested.status = Some(SkillStatus { features: found, ..SkillStatus::default() });
        assert!(has_all_results(&tested, &revision()));
    }
}
