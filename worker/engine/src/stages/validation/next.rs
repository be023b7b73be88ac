//! The steps of a validation.

use crate::conversation::Conversation;
use crate::event::Event;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::{Feature, FeatureResult, SkillSpec, Usage};

/// The next step of a Job that validates its Skill.
#[derive(Debug, PartialEq)]
pub enum ValidationStep<'a> {
    /// Test a feature within these limits, and record [`Event::FeatureTested`].
    Test(&'a Feature, EffectiveLimits),
    /// Record this event: the end of the Job, or the result of a feature that cannot be tested any more.
    Record(Event),
    /// Nothing: the Job has ended.
    Done,
}

/// Returns the next step of a validation. The limits of the Job for tokens and time apply to all tests together. A feature without a
/// result has failed when one of them is reached.
pub fn next(conversation: &Conversation) -> ValidationStep<'_> {
    if conversation.outcome().is_some() {
        return ValidationStep::Done;
    }
    let end = |code, message: &str| {
        ValidationStep::Record(Event::Finished { outcome: Outcome::new(code, message), result: None })
    };
    if let Some(code) = conversation.demanded_end() {
        return end(code, "The Job was ended before all features were tested.");
    }
    let (run, validation) = (conversation.run(), &conversation.validation);
    let untested_feature = run.skill.tested_features().find(|feature| validation.result_of(&feature.name).is_none());
    let Some(feature) = untested_feature else {
        let (code, message) = conclusion(&run.skill, &validation.results().collect::<Vec<_>>());
        return end(code, &message);
    };
    let limits = EffectiveLimits {
        tokens: run.limits.tokens.saturating_sub(validation.usage().tokens()),
        duration_seconds: run.limits.duration_seconds.saturating_sub(conversation.budget().worked_ms() / 1000),
        ..run.limits
    };
    if limits.tokens == 0 {
        let spent = format!("{} tokens", run.limits.tokens);
        return ValidationStep::Record(untested(feature, OutcomeCode::TokenLimit, &spent));
    }
    if limits.duration_seconds == 0 {
        let spent = format!("{} s of work", run.limits.duration_seconds);
        return ValidationStep::Record(untested(feature, OutcomeCode::DurationLimit, &spent));
    }
    ValidationStep::Test(feature, limits)
}

/// Returns the failed test of a feature that is not tested, because a limit of the Job is reached.
fn untested(feature: &Feature, code: OutcomeCode, spent: &str) -> Event {
    let reason = format!("{code}: The tests have reached the limit of the Job, {spent}, before this one.");
    let result = FeatureResult { name: feature.name.clone(), reason: Some(reason), ..FeatureResult::default() };
    Event::FeatureTested { result, usage: Usage::default() }
}

/// Returns the outcome of a Job that has tested all features of its Skill. A Skill passes if other Skills test all of its features.
fn conclusion(skill: &SkillSpec, results: &[&FeatureResult]) -> (OutcomeCode, String) {
    let failed: Vec<&str> = results.iter().filter(|result| !result.passed).map(|result| result.name.as_str()).collect();
    match (results.len(), failed.len()) {
        (0, _) => {
            let others = skill.testing_skills().into_iter().collect::<Vec<_>>().join(", ");
            if others.is_empty() {
                return (OutcomeCode::FeatureFailed, "The Skill has no feature to test.".to_owned());
            }
            let message =
                format!("The features of the Skill are tested by the Skills of their ext.subskill: {others}.");
            (OutcomeCode::Succeeded, message)
        }
        (all, 0) => (OutcomeCode::Succeeded, format!("All {all} features passed.")),
        (all, count) => {
            (OutcomeCode::FeatureFailed, format!("{count} of {all} features failed: {}.", failed.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Directive;
    use crate::fixture::staged::status;
    use crate::fixture::{World, run};
    use crate::run::Run;
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::{Engine, Validation};
    use rstest::rstest;
    use serde_json::json;

    /// Returns a Job that validates a Skill with two features, and one that another Skill tests.
    fn validating() -> World {
        repeating(&Validation::default())
    }

    /// Returns a Job that validates the same Skill with these settings.
    fn repeating(validation: &Validation) -> World {
        let feature = |name: &str, ext| json!({"name": name, "testScenario": "x", "expectedResult": "y", "ext": ext});
        let features = json!([
            feature("greets", json!({})),
            feature("lists", json!({"subskill": "lister"})),
            feature("refuses", json!({})),
        ]);
        let engine = Engine { validation: Some(validation.clone()), ..run().skill.engine.unwrap_or_default() };
        let features = serde_json::from_value(features).unwrap();
        let skill = SkillSpec { features, engine: Some(engine), ..run().skill };
        World::new(Run { skill, ..run() }, Vec::new(), |_, _| panic!("a validation calls no tool itself"))
    }

    fn tested(name: &str, passed: bool, tokens: u64) -> Event {
        let result = FeatureResult { name: name.into(), passed, tokens, ..FeatureResult::default() };
        Event::FeatureTested { result, usage: Usage { input_tokens: tokens, ..Usage::default() } }
    }

    /// Returns the name of the feature to test, or the outcome code.
    fn step(world: &World) -> String {
        match next(&world.conversation) {
            ValidationStep::Test(feature, _) => feature.name.clone(),
            ValidationStep::Record(Event::Finished { outcome, .. }) => outcome.code.to_string(),
            ValidationStep::Record(event) => panic!("{event:?}"),
            ValidationStep::Done => "done".to_owned(),
        }
    }

    #[rstest]
    #[case::both_pass(true, "Succeeded")]
    #[case::one_fails(false, "FeatureFailed")]
    fn features_are_tested_in_order_and_decide_the_outcome(#[case] passed: bool, #[case] code: &str) {
        let mut world = validating();
        assert_eq!(step(&world), "greets");
        world.record(tested("greets", true, 10));
        assert_eq!(step(&world), "refuses", "a feature of another Skill is left out");
        world.record(tested("refuses", passed, 5));
        assert_eq!(step(&world), code);
        let ValidationStep::Record(end) = next(&world.conversation) else { panic!("not the end") };
        world.record(end);
        assert_eq!(step(&world), "done");
        let status = status(&world);
        assert_eq!(status.phase, if passed { Phase::Succeeded } else { Phase::Failed });
        assert_eq!(status.features.iter().map(|result| result.passed).collect::<Vec<_>>(), [true, passed]);
        assert_eq!(status.usage.input_tokens, 15);
    }

    #[test]
    fn the_tests_share_the_tokens_of_the_job() {
        let mut world = validating();
        let all = world.conversation.run().limits;
        world.record(tested("greets", true, 10));
        let ValidationStep::Test(_, left) = next(&world.conversation) else { panic!("no test") };
        assert_eq!(left, EffectiveLimits { tokens: all.tokens - 10, ..all });
    }

    #[test]
    fn features_without_a_result_have_failed_when_the_tokens_are_used_up() {
        let mut world = repeating(&Validation { runs: Some(3), ..Validation::default() });
        let all = world.conversation.run().limits.tokens;
        world.record(tested("greets", true, all));
        for _ in ["greets", "refuses"] {
            let ValidationStep::Record(untested) = next(&world.conversation) else { panic!("not the end") };
            world.record(untested);
        }
        assert_eq!(step(&world), "FeatureFailed");
        let results = status(&world).features;
        let limit = format!("TokenLimit: The tests have reached the limit of the Job, {all} tokens, before this one.");
        let found: Vec<_> = results.iter().map(|result| (result.passed, result.reason.clone().unwrap())).collect();
        assert_eq!(found, [(false, format!("1 of 2 tests failed: {limit}")), (false, limit)]);
    }

    #[test]
    fn each_feature_is_tested_until_its_result_is_certain() {
        let mut world = repeating(&Validation { runs: Some(3), pass_rate: Some(0.66), ..Validation::default() });
        world.record(tested("greets", false, 1));
        assert_eq!((step(&world).as_str(), status(&world).features.len()), ("greets", 0));
        world.record(tested("greets", true, 2));
        world.record(tested("greets", true, 4));
        world.record(tested("refuses", false, 8));
        assert_eq!(step(&world), "refuses");
        world.record(tested("refuses", false, 16));
        assert_eq!(step(&world), "FeatureFailed", "the third test cannot change the result");
        let features = status(&world).features;
        let found: Vec<_> = features.iter().map(|result| (result.passed, result.tokens)).collect();
        assert_eq!(found, [(true, 7), (false, 24)]);
        assert_eq!(features[0].reason.as_deref(), Some("1 of 3 tests failed: "));
    }

    #[test]
    fn a_cancelled_validation_tests_no_further_feature() {
        let mut world = validating();
        world.record(tested("greets", true, 10));
        world.record(Event::DirectiveReceived { directive: Directive::Cancel });
        assert_eq!(step(&world), "Cancelled");
    }

    #[test]
    fn a_skill_without_features_does_not_pass() {
        let world = World::new(run(), Vec::new(), |_, _| panic!("a validation calls no tool itself"));
        assert_eq!(step(&world), "FeatureFailed");
    }

    #[test]
    fn a_skill_whose_features_other_skills_test_passes() {
        let mut skill = validating().conversation.run().skill.clone();
        skill.features.retain(|feature| feature.subskill().is_some());
        let world = World::new(Run { skill, ..run() }, Vec::new(), |_, _| panic!("a validation calls no tool itself"));
        let ValidationStep::Record(Event::Finished { outcome, .. }) = next(&world.conversation) else { panic!() };
        assert_eq!(outcome.code, OutcomeCode::Succeeded);
        assert!(outcome.message.ends_with("ext.subskill: lister."), "{}", outcome.message);
    }

    #[test]
    fn a_second_result_of_a_feature_changes_nothing() {
        let mut world = validating();
        world.record(tested("greets", false, 10));
        world.record(tested("greets", true, 10));
        assert_eq!(status(&world).features.iter().map(|result| result.passed).collect::<Vec<_>>(), [false]);
    }
}
