//! Observes whether the features of a Skill have passed on its current revision.

use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::{Feature, FeatureStatus, RevisionRef, Skill};

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::Validated;

/// Returns the results of features that the Skill still has.
pub(super) fn kept(skill: &Skill, results: Vec<FeatureStatus>) -> Vec<FeatureStatus> {
    let is_kept = |result: &FeatureStatus| skill.spec.features.iter().any(|feature| feature.name == result.name);
    results.into_iter().filter(is_kept).collect()
}

/// Returns the condition; none if the Skill has no features, or other Skills test all of them.
pub(super) fn observation(
    skill: &Skill,
    revision: Option<&RevisionRef>,
    results: &[FeatureStatus],
) -> Option<Observation> {
    let features = skill.spec.features.iter().filter(|feature| feature.subskill().is_none());
    let features: Vec<&Feature> = features.collect();
    let revision = revision.filter(|_| !features.is_empty())?.name.as_str();
    let result_of =
        |feature: &Feature| results.iter().find(|result| result.name == feature.name && result.revision == revision);
    let failed = features.iter().filter_map(|feature| result_of(feature)).filter(|result| !result.passed);
    let failed: Vec<String> = failed.map(failure).collect();
    if !failed.is_empty() {
        return Some(Observation::fails(KIND, Reason::FeatureFailed, join_sentences(&failed, MAX_LIST_BYTES)));
    }
    let untested = features.iter().filter(|feature| result_of(feature).is_none());
    let untested: Vec<&str> = untested.map(|feature| feature.name.as_str()).collect();
    if untested.is_empty() {
        let message = format!("all {} features passed on {revision}", features.len());
        return Some(Observation::holds(KIND, Reason::FeaturesPassed, message));
    }
    let names = untested.join(", ");
    let message = format!("no Job has tested {names} on {revision}: create a Job with mode: Validate");
    Some(Observation { kind: KIND, holds: None, reason: Reason::NotValidated, message })
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
        assert_eq!(observation(&skill(), Some(&revision), &results), Some(expected));
        assert_eq!(observation(&fixtures::without_server(), Some(&revision), &results), None);
    }

    #[test]
    fn results_of_removed_features_are_dropped() {
        let kept = kept(&skill(), vec![result("greets", true, "orders-1"), result("gone", true, "orders-1")]);
        assert_eq!(kept.iter().map(|result| result.name.as_str()).collect::<Vec<_>>(), ["greets"]);
    }
}
