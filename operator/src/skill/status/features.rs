//! Observes whether the features of a Skill have passed on its current revision.

use super::super::test_job::{DEBOUNCE, TestJob, is_wanted, name_of};
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::status::requires_validation;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::{Feature, FeatureStatus, RevisionRef, Skill};

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::Validated;

/// Returns the results of features that the Skill still has.
pub(super) fn kept(skill: &Skill, results: Vec<FeatureStatus>) -> Vec<FeatureStatus> {
    let is_kept = |result: &FeatureStatus| skill.spec.features.iter().any(|feature| feature.name == result.name);
    results.into_iter().filter(is_kept).collect()
}

/// Returns the results with those that the Job of the current revision has found, and that are not recorded: the Skill has had another
/// revision meanwhile.
pub(super) fn with_found(
    recorded: Vec<FeatureStatus>,
    revision: Option<&RevisionRef>,
    test_job: &TestJob,
) -> Vec<FeatureStatus> {
    let (Some(revision), TestJob::Ended(found)) = (revision, test_job) else { return recorded };
    let is_recorded = |result: &FeatureStatus| {
        recorded.iter().any(|recorded| recorded.name == result.name && recorded.revision == result.revision)
    };
    let missing = found.iter().filter(|result| result.revision == revision.name && !is_recorded(result));
    FeatureStatus::merge(&recorded, missing.cloned().collect())
}

/// Returns the condition; none if the Skill has no features. It holds if other Skills test all of them. `validated` is the latest revision before
/// this one on which all features have passed.
pub(super) fn observation(
    skill: &Skill,
    (revision, validated): (Option<&RevisionRef>, Option<&RevisionRef>),
    results: &[FeatureStatus],
) -> Option<Observation> {
    let features: Vec<&Feature> = skill.spec.tested_features().collect();
    let reference = revision.filter(|_| !skill.spec.features.is_empty())?;
    let revision = reference.name.as_str();
    if features.is_empty() {
        let others = skill.spec.testing_skills().into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("other Skills test all features of {revision}: {others}");
        return Some(Observation::holds(KIND, Reason::FeaturesPassed, message));
    }
    let result_of =
        |feature: &Feature| results.iter().find(|result| result.name == feature.name && result.revision == revision);
    let effect = effect_on_jobs(skill, reference, validated);
    let failed = features.iter().filter_map(|feature| result_of(feature)).filter(|result| !result.passed);
    let failed: Vec<String> = failed.map(failure).collect();
    if !failed.is_empty() {
        let failures = join_sentences(&failed, MAX_LIST_BYTES.saturating_sub(effect.len()));
        return Some(Observation::fails(KIND, Reason::FeatureFailed, format!("{failures}{effect}")));
    }
    let untested = features.iter().filter(|feature| result_of(feature).is_none());
    let untested: Vec<&str> = untested.map(|feature| feature.name.as_str()).collect();
    if untested.is_empty() {
        let message = format!("all {} features passed on {revision}", features.len());
        return Some(Observation::holds(KIND, Reason::FeaturesPassed, message));
    }
    let names = untested.join(", ");
    let remedy = if is_wanted(skill) {
        let (job, delay) = (name_of(skill, reference), DEBOUNCE.as_secs());
        format!(
            "the Job {job} tests the Skill once it is ready and {delay} s unchanged. If that Job has ended, delete it to test again"
        )
    } else {
        "create a Job with mode: Validate".to_owned()
    };
    let end = if effect.is_empty() { "" } else { "." };
    let message = format!("no Job has tested {names} on {revision}: {remedy}{end}{effect}");
    Some(Observation { kind: KIND, holds: None, reason: Reason::NotValidated, message })
}

/// Returns the sentence about the revision that new Jobs run on, after a space; empty if it is the current one.
fn effect_on_jobs(skill: &Skill, current: &RevisionRef, validated: Option<&RevisionRef>) -> String {
    match validated {
        _ if !requires_validation(skill) => String::new(),
        Some(validated) if validated == current => String::new(),
        Some(validated) => format!(" New Jobs run {}, the latest revision that has passed.", validated.name),
        None => " New Jobs wait, because no revision has passed yet.".to_owned(),
    }
}

/// Returns the sentence about a feature that has failed.
fn failure(result: &FeatureStatus) -> String {
    let reason = result.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} failed in the Job {}{reason}.", result.name, result.job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;
    use bloomery_crds::Digest;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Returns a Skill with two features, and one that another Skill tests.
    fn skill() -> Skill {
        let feature =
            |name: &str, ext: Value| json!({"name": name, "testScenario": "x", "expectedResult": "y", "ext": ext});
        let mut skill = fixtures::without_server();
        let features = [
            feature("greets", json!({})),
            feature("lists", json!({"subskill": "lister"})),
            feature("refuses", json!({})),
        ];
        skill.spec.features = serde_json::from_value(json!(features)).unwrap();
        skill
    }

    fn result(name: &str, passed: bool, revision: &str) -> FeatureStatus {
        serde_json::from_value(json!({
            "name": name, "passed": passed, "reason": if passed { Value::Null } else { json!("nobody was greeted") },
            "revision": revision, "job": "nightly", "time": "2026-01-01T00:00:00Z", "tokens": 7,
        }))
        .unwrap()
    }

    #[rstest]
    #[case::all_passed(
        &[("greets", true, "orders-2"), ("refuses", true, "orders-2")], Some(true), Reason::FeaturesPassed,
        "all 2 features passed on orders-2"
    )]
    #[case::one_failed(
        &[("greets", false, "orders-2")], Some(false), Reason::FeatureFailed,
        "greets failed in the Job nightly: nobody was greeted."
    )]
    #[case::on_an_earlier_revision(
        &[("greets", false, "orders-1"), ("refuses", true, "orders-2")], None, Reason::NotValidated,
        "no Job has tested greets on orders-2: create a Job with mode: Validate"
    )]
    fn the_results_of_the_current_revision_decide(
        #[case] results: &[(&str, bool, &str)],
        #[case] holds: Option<bool>,
        #[case] reason: Reason,
        #[case] message: &str,
    ) {
        let results: Vec<_> = results.iter().map(|(name, passed, on)| result(name, *passed, on)).collect();
        let revision = RevisionRef { name: "orders-2".into(), digest: Digest::of_bytes(b"") };
        let expected = Observation { kind: KIND, holds, reason, message: message.into() };
        assert_eq!(observation(&skill(), (Some(&revision), None), &results), Some(expected));
        assert_eq!(observation(&fixtures::without_server(), (Some(&revision), None), &results), None);
    }

    #[test]
    fn a_skill_whose_features_other_skills_test_is_validated() {
        let mut skill = skill();
        skill.spec.features.retain(|feature| feature.subskill().is_some());
        let revision = RevisionRef { name: "orders-2".into(), digest: Digest::of_bytes(b"") };
        let message = "other Skills test all features of orders-2: lister".to_owned();
        let expected = Observation { kind: KIND, holds: Some(true), reason: Reason::FeaturesPassed, message };
        assert_eq!(observation(&skill, (Some(&revision), None), &[]), Some(expected));
    }

    #[rstest]
    #[case::failed(
        &[("greets", false, "orders-2")], Some("orders-1"),
        "greets failed in the Job nightly: nobody was greeted. New Jobs run orders-1, the latest revision that has passed."
    )]
    #[case::failed_before_any_has_passed(
        &[("greets", false, "orders-2")], None,
        "greets failed in the Job nightly: nobody was greeted. New Jobs wait, because no revision has passed yet."
    )]
    #[case::failed_after_it_had_passed(
        &[("greets", false, "orders-2")], Some("orders-2"), "greets failed in the Job nightly: nobody was greeted."
    )]
    #[case::not_tested(
        &[("greets", true, "orders-2")], Some("orders-1"),
        "no Job has tested refuses on orders-2: create a Job with mode: Validate. New Jobs run orders-1, the latest revision that has passed."
    )]
    fn the_condition_names_the_revision_of_new_jobs(
        #[case] results: &[(&str, bool, &str)],
        #[case] validated: Option<&str>,
        #[case] message: &str,
    ) {
        let mut skill = skill();
        skill.spec.engine = serde_json::from_value(json!({"validation": {"requireFor": "run"}})).unwrap();
        let results: Vec<_> = results.iter().map(|(name, passed, on)| result(name, *passed, on)).collect();
        let revision = |name: &str| RevisionRef { name: name.into(), digest: Digest::of_bytes(b"") };
        let (current, validated) = (revision("orders-2"), validated.map(revision));
        let found = observation(&skill, (Some(&current), validated.as_ref()), &results);
        assert_eq!(found.unwrap().message, message);
    }

    #[test]
    fn the_condition_names_the_job_that_tests_a_new_revision() {
        let mut skill = skill();
        skill.spec.engine = serde_json::from_value(json!({"validation": {"onChange": true}})).unwrap();
        let revision = RevisionRef { name: "orders-2".into(), digest: Digest::of_bytes(b"2") };
        let message = observation(&skill, (Some(&revision), None), &[]).unwrap().message;
        assert!(message.contains(&name_of(&skill, &revision)) && message.contains("10 s unchanged"), "{message}");
    }

    #[test]
    fn results_of_the_current_revision_are_found_again() {
        let revision = RevisionRef { name: "orders-1".into(), digest: Digest::of_bytes(b"1") };
        let recorded = vec![result("greets", true, "orders-2"), result("refuses", true, "orders-1")];
        let found = [("greets", "orders-1"), ("refuses", "orders-1"), ("lists", "orders-0")];
        let found = TestJob::Ended(found.map(|(name, on)| result(name, false, on)).into());
        let all = with_found(recorded.clone(), Some(&revision), &found);
        assert_eq!(all, [result("greets", false, "orders-1"), result("refuses", true, "orders-1")]);
        assert_eq!(with_found(recorded.clone(), Some(&revision), &TestJob::Unfinished), recorded);
    }

    #[test]
    fn results_of_removed_features_are_dropped() {
        let kept = kept(&skill(), vec![result("greets", true, "orders-1"), result("gone", true, "orders-1")]);
        assert_eq!(kept.iter().map(|result| result.name.as_str()).collect::<Vec<_>>(), ["greets"]);
    }
}
