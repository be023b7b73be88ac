//! The validation of a Skill: it tests each feature in a conversation of its own.
//!
//! The test is an ordinary conversation. Its goal is the scenario of the feature, and the finalization gate judges the answer by the
//! expected result. If a script implements the feature, its latest call must have ended with exit code 0. The pre-tool gate denies calls
//! with an effect whose tool the feature does not allow ([`Run::allowed_effects`]).
//!
//! [`Run::allowed_effects`]: crate::run::Run::allowed_effects

use crate::stages::calls::ScriptEnds;
use crate::stages::finalization::faults;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::Projection;
use bloomery_crds::scripts;
use bloomery_crds::v1alpha1::{Feature, SkillSpec};

/// The result of the test of a feature.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureVerdict {
    /// True if the Job succeeded, a model has judged its answer, and the script of the feature ended with exit code 0.
    pub passed: bool,
    /// The score of the last answer that was judged, 0 to 1.
    pub score: Option<f64>,
    /// The reason, as one sentence or more. Empty for a feature that passed without a remark.
    pub reason: String,
}

/// Returns the Skill whose conversation tests a feature. The expected result is its only acceptance criterion, a model always judges the
/// answer, and an optional feature applies. The accepted answer is not rewritten, because nothing judges the rewritten one.
pub fn feature_skill(skill: &SkillSpec, feature: &Feature) -> SkillSpec {
    let mut spec = skill.clone();
    spec.acceptance_criteria = vec![feature.expected_result.clone()];
    for tested in spec.features.iter_mut().filter(|tested| tested.name == feature.name) {
        tested.optional = None;
    }
    let engine = spec.engine.get_or_insert_default();
    engine.finalization_gate.get_or_insert_default().enabled = Some(true);
    engine.reply_polisher.get_or_insert_default().enabled = Some(false);
    spec
}

/// Returns the tools with an effect that the test of a feature may call: those that the feature allows, and the tool of its script.
pub fn allowed_effects(feature: &Feature) -> Vec<String> {
    feature.allow.iter().cloned().chain(feature.script().map(scripts::tool)).collect()
}

/// Returns the result of the test of a feature whose conversation has ended, or waits for people. `ends` are the ends of the latest
/// calls of scripts in the conversation.
pub fn verdict(feature: &Feature, projection: &Projection, ends: &ScriptEnds) -> FeatureVerdict {
    let gate = &projection.gates.finalization;
    let last = gate.attempts.last();
    let code = projection.outcome.as_ref().map(|outcome| outcome.code);
    let is_accepted = code == Some(OutcomeCode::Succeeded) && gate.passed && !gate.skipped;
    let of_script = script_fault(feature, ends);
    let passed = is_accepted && of_script.is_none();
    let of_answer = match &projection.outcome {
        _ if is_accepted => last.map(faults).unwrap_or_default(),
        Some(outcome) => format!("{}: {}", outcome.code, outcome.message),
        None => unfinished(projection),
    };
    let reasons: Vec<String> = of_script.into_iter().chain(Some(of_answer).filter(|text| !text.is_empty())).collect();
    let reason = reasons.join(" ");
    FeatureVerdict { passed, score: last.and_then(|attempt| attempt.score), reason }
}

/// Returns a sentence about the script that implements a feature, unless its latest call ended with exit code 0.
fn script_fault(feature: &Feature, ends: &ScriptEnds) -> Option<String> {
    // A subskill comes before a script, which is then only context.
    let script = feature.script().filter(|_| feature.subskill().is_none())?;
    match ends.get(&scripts::tool(script)) {
        None => Some(format!("The script {script} was not called.")),
        Some(end) => end.as_ref().map(|clause| format!("The script {script} {clause}.")),
    }
}

/// Returns the reason why a conversation did not end.
fn unfinished(projection: &Projection) -> String {
    match projection.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref()) {
        Some(call) => format!(
            "The call of {} needs the approval of {}, and a validation asks nobody: {}",
            call.tool,
            call.approvers.join(", "),
            call.reason
        ),
        None => "The conversation was stopped before it ended.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::checks::{ALL_WELL, ended, order};
    use crate::fixture::staged::status;
    use crate::fixture::{Reply, Tools, World, asks, good_answer, run, skill};
    use crate::run::Run;
    use crate::tool::ListedTool;
    use bloomery_crds::v1alpha1::{GateReason, Stage, Verdict};
    use rstest::rstest;
    use serde_json::json;

    fn feature(more: &serde_json::Value) -> Feature {
        let mut feature =
            json!({"name": "refunds", "testScenario": "When A-17 is broken", "expectedResult": "It is refunded"});
        feature.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(feature).unwrap()
    }

    /// Returns the run of the test of a feature, with the Skill of the fixture.
    fn test_of(feature: &Feature) -> Run {
        Run { skill: feature_skill(&skill(), feature), allowed_effects: Some(allowed_effects(feature)), ..run() }
    }

    fn verdict_of(world: &World) -> FeatureVerdict {
        verdict(&feature(&json!({})), &status(world), world.conversation.script_ends())
    }

    #[test]
    fn the_answer_is_judged_by_the_expected_result_only() {
        let tested = feature(&json!({"optional": true}));
        let spec = SkillSpec {
            acceptance_criteria: vec!["Be brief".into()],
            features: vec![tested.clone(), Feature { name: "other".into(), ..tested.clone() }],
            ..skill()
        };
        let derived = feature_skill(&spec, &tested);
        assert_eq!(derived.acceptance_criteria, ["It is refunded"]);
        assert_eq!(derived.features.iter().map(Feature::is_required).collect::<Vec<_>>(), [true, false]);
        let engine = derived.engine.as_ref().unwrap();
        assert_eq!(engine.finalization_gate.as_ref().unwrap().enabled, Some(true));
        assert_eq!(engine.reply_polisher.as_ref().unwrap().enabled, Some(false));
        assert_eq!(
            (derived.tools, derived.policy, derived.output_contract),
            (spec.tools, spec.policy, spec.output_contract)
        );
    }

    #[test]
    fn the_script_of_a_feature_is_allowed() {
        let tested = feature(&json!({"allow": ["note"], "ext": {"script": "check.order.sh"}}));
        assert_eq!(allowed_effects(&tested), ["note", "script_check_order"]);
    }

    /// A rule that lets calls of the tool pass allows no effect.
    #[rstest]
    #[case::none(&[], 0)]
    #[case::its_name(&["process_refund"], 1)]
    #[case::a_prefix(&["process_*"], 1)]
    #[case::another_tool(&["note"], 0)]
    fn only_effects_that_the_feature_allows_reach_the_server(#[case] allow: &[&str], #[case] effects: usize) {
        let mut run = test_of(&feature(&json!({ "allow": allow })));
        run.skill.tools[2].policy = serde_json::from_value(json!({"allowed": "always"})).unwrap();
        let calls = [("verify_identity", order()), ("process_refund", order())];
        let world = ended(run, vec![asks(&calls), good_answer()], ALL_WELL);
        assert_eq!(world.effects.len(), effects);
        let rulings = world.conversation.shared.calls.rulings();
        assert_eq!(rulings.last[0].verdict, Verdict::Allow, "a read runs");
        let denied = rulings.last.iter().find(|ruling| ruling.verdict == Verdict::Deny);
        assert_eq!(denied.and_then(|ruling| ruling.rule), (effects == 0).then_some(GateReason::Policy));
        assert!(verdict_of(&world).passed);
    }

    const EXITS_WITH_3: Tools = |_, _| Reply::Failed(r#"{"exitCode":3,"stderr":"","stdout":"{\"exitCode\":0}"}"#);

    const TAKES_TOO_LONG: Tools = |_, _| Reply::Failed(r#"{"exitCode":null,"stderr":"killed","stdout":""}"#);

    const FAILS_AT_FIRST: Tools =
        |_, times| if times == 1 { Reply::Failed("{\"exitCode\":3}") } else { Reply::Completed("{\"exitCode\":0}") };

    const FAILS_IN_THE_END: Tools =
        |_, times| if times == 1 { Reply::Completed("{\"exitCode\":0}") } else { Reply::Failed("{\"exitCode\":3}") };

    /// The model that judges accepts every answer.
    #[rstest]
    #[case::exit_code_0(ALL_WELL, 1, "")]
    #[case::never_called(ALL_WELL, 0, "The script check.sh was not called.")]
    #[case::another_exit_code(EXITS_WITH_3, 1, "The script check.sh ended with exit code 3.")]
    #[case::no_exit_code(TAKES_TOO_LONG, 1, "The script check.sh did not end with exit code 0: {\"exitCode\":null")]
    #[case::fails_at_first(FAILS_AT_FIRST, 2, "")]
    #[case::fails_in_the_end(FAILS_IN_THE_END, 2, "The script check.sh ended with exit code 3.")]
    fn the_script_of_a_feature_must_end_with_exit_code_0(
        #[case] tools: Tools,
        #[case] calls: usize,
        #[case] expected: &str,
    ) {
        let tested = feature(&json!({"ext": {"script": "check.sh", "skillMdRef": "#context"}}));
        let call = asks(&[("script_check", order())]);
        let mut world = World::new(test_of(&tested), vec![call; calls], tools);
        world.listed.push(ListedTool { name: "script_check".into(), ..world.listed[0].clone() });
        world.play_out();
        assert_eq!(world.effects.len(), calls);
        let FeatureVerdict { passed, reason, .. } = verdict(&tested, &status(&world), world.conversation.script_ends());
        assert_eq!(passed, expected.is_empty(), "{reason}");
        assert!(reason.starts_with(expected), "{reason}");
        let resumed = world.resumed_from(world.log.len());
        assert_eq!(resumed.conversation.script_ends(), world.conversation.script_ends());
    }

    #[test]
    fn a_script_that_is_context_of_a_subskill_is_not_tested() {
        let tested = feature(&json!({"ext": {"subskill": "checker", "script": "check.sh"}}));
        let world = ended(test_of(&tested), vec![good_answer()], ALL_WELL);
        assert!(verdict(&tested, &status(&world), world.conversation.script_ends()).passed);
    }

    #[test]
    fn a_rejected_answer_fails_with_its_reason_and_score() {
        let mut world = World::new(test_of(&feature(&json!({}))), vec![good_answer()], ALL_WELL);
        let ruling = r#"{"passed": false, "score": 0.2, "reasons": [{"code": "GOAL_NOT_MET", "detail": "no refund"}]}"#;
        world.stages.insert(Stage::Finalization, vec![ruling]);
        world.play_out();
        let FeatureVerdict { passed, score, reason } = verdict_of(&world);
        assert!(!passed && reason.starts_with("GateFailed: ") && reason.contains("no refund"), "{reason}");
        assert_eq!(score, Some(0.2));
    }

    #[test]
    fn an_answer_that_no_model_judged_does_not_pass() {
        let world = ended(run(), vec![good_answer()], ALL_WELL);
        assert!(!verdict_of(&world).passed);
    }

    #[test]
    fn a_call_that_needs_approval_fails_the_test() {
        let mut run = test_of(&feature(&json!({"allow": ["process_refund"]})));
        run.skill.tools[2].policy = serde_json::from_value(json!({"requiresApproval": "always"})).unwrap();
        let mut world = World::new(run, vec![asks(&[("process_refund", order())])], ALL_WELL);
        world.play_out();
        let FeatureVerdict { passed, reason, .. } = verdict_of(&world);
        assert!(!passed && reason.contains("process_refund needs the approval of default"), "{reason}");
        assert_eq!(world.effects, []);
    }
}
