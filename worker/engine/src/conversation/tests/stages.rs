//! A Skill grown from that of seed 002 through all of its stages.

use super::super::fixture::{Reply, Tools, World, asks, says};
use super::{ALL_WELL, assert_history_is_well_formed, code, ended, order, seed};
use crate::event::{Answer, Event, ModelFailure, Polish};
use crate::line::Chain;
use crate::projection::project;
use crate::run::Run;
use crate::step::{Step, next};
use crate::turn::Turn;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::{FinalizationCode, GateReason, SkillSpec, Stage, SuggestedAction, ToolDeclaration};
use rstest::rstest;
use serde_json::json;

const REFUND: &str = r#"{"intent": "intent_refund", "entities": {"order_id": "A-17"}}"#;
const TRACK: &str = r#"{"intent": "intent_track", "entities": {"order_id": "C-2"}}"#;

/// The seed's Skill, grown: it says which tools only read, serves an intent more, and binds its workflow to one.
fn cs_tier_1() -> SkillSpec {
    let mut skill = seed::skill();
    skill.tools.extend(
        serde_json::from_value::<Vec<ToolDeclaration>>(json!([
            {"name": "verify_identity", "readOnly": true},
            {"name": "check_eligibility", "readOnly": true},
        ]))
        .unwrap(),
    );
    let track = json!({"id": "intent_track", "entities": [{"name": "order_id", "type": "string", "required": true}]});
    skill.intents.as_mut().unwrap().supported.push(serde_json::from_value(track).unwrap());
    skill.policy.as_mut().unwrap().workflows[0].intents = vec!["intent_refund".into()];
    skill
}

fn run_of(skill: SkillSpec) -> Run {
    Run { skill, ..super::run() }
}

pub(super) fn refunds(amount: f64) -> Answer {
    asks(&[("process_refund", json!({"order_id": "A-17", "amount": amount}))])
}

pub(super) fn answer(prose: &str) -> Answer {
    says(&format!("{prose}\n```json\n{{\"order_id\": \"A-17\", \"status\": \"done\", \"next_steps\": \"none\"}}\n```"))
}

pub(super) fn looked_up() -> Answer {
    asks(&[("verify_identity", order()), ("check_eligibility", order())])
}

/// A conversation that is about to begin, and what each stage is answered.
pub(super) fn staged(skill: SkillSpec, answers: Vec<Answer>, stages: &[(Stage, &[&'static str])]) -> World {
    let mut world = World::new(run_of(skill), answers, ALL_WELL);
    world.stages.insert(Stage::Intent, vec![REFUND]);
    world.stages.insert(Stage::Polish, vec!["Your refund is on its way, dear customer!"]);
    for (stage, answers) in stages {
        world.stages.insert(*stage, answers.to_vec());
    }
    world
}

fn world(skill: SkillSpec, answers: Vec<Answer>, stages: &[(Stage, &[&'static str])]) -> World {
    let mut world = staged(skill, answers, stages);
    world.play_out();
    world
}

fn refund_world() -> World {
    world(cs_tier_1(), vec![looked_up(), refunds(49.9), answer("Your refund is on its way.")], &[])
}

pub(super) fn status(world: &World) -> Projection {
    project(&world.conversation, Chain::new("/test").position("jobs/x"))
}

#[test]
fn the_skill_of_the_seed_refunds_with_one_call_of_each_stage() {
    let world = refund_world();
    let status = status(&world);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let calls = &status.usage.llm_calls;
    assert_eq!((calls.intent, calls.plan, calls.finalization, calls.polish), (1, 3, 1, 1));
    assert_eq!(status.gates.intent.unwrap().id.as_deref(), Some("intent_refund"));
    assert_eq!(status.workflows[0].done, ["verify_identity", "check_eligibility", "process_refund"]);
    assert_eq!(status.gates.finalization.attempts[0].score, Some(0.9));
    let result = status.result.unwrap();
    assert_eq!((result.text.as_str(), result.polished), ("Your refund is on its way, dear customer!", true));
    assert_eq!(result.fields["status"], "done");
    insta::assert_snapshot!(world.names().join("\n"));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn an_intent_that_the_workflow_does_not_serve_needs_no_refund() {
    let answers = vec![asks(&[("verify_identity", order())]), answer("It is on its way.")];
    let world = world(cs_tier_1(), answers, &[(Stage::Intent, &[TRACK]), (Stage::Polish, &["It is on its way."])]);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(status(&world).workflows[0].open, ["check_eligibility", "process_refund"]);
}

#[test]
fn a_refund_out_of_order_is_denied_and_the_model_is_told_what_comes_first() {
    let world = world(
        cs_tier_1(),
        vec![refunds(49.9), looked_up(), refunds(49.9), answer("Done.")],
        &[(Stage::Polish, &["Done."])],
    );
    let gate = status(&world).gates.pre_tool;
    assert_eq!((gate.denied, gate.last[0].rule), (1, Some(GateReason::Workflow)));
    let told = world.conversation.turns().iter().find_map(|turn| match turn {
        Turn::ToolResult { text, .. } => Some(text.clone()),
        Turn::User(_) | Turn::Assistant(_) => None,
    });
    assert!(told.unwrap().contains("\"verify_identity\""));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 1));
}

#[test]
fn reads_of_one_answer_that_a_workflow_orders_run_in_their_order_whatever_the_model_calls_them() {
    let mut skill = cs_tier_1();
    for tool in &mut skill.tools {
        tool.name = tool.name.replace('_', ".");
    }
    let policy = skill.policy.as_mut().unwrap();
    for step in &mut policy.workflows[0].steps {
        *step = step.replace('_', ".");
    }
    let mut world = World::new(run_of(skill), Vec::new(), ALL_WELL);
    for tool in &mut world.listed {
        tool.name = tool.name.replace('_', ".");
    }
    world.stages.insert(Stage::Intent, vec![TRACK]);
    world.play_until(|conversation| conversation.system().is_some());
    let alias = |name: &str| world.conversation.visible().iter().find(|tool| tool.name == name).unwrap().alias.clone();
    let (verify, check) = (alias("verify.identity"), alias("check.eligibility"));
    assert_ne!(verify, "verify.identity");
    world.answers = vec![asks(&[(&verify, order()), (&check, order())]), answer("Done.")];
    world.play_out();
    assert_eq!(status(&world).gates.pre_tool.denied, 0);
    assert_eq!(status(&world).workflows[0].done, ["verify.identity", "check.eligibility"]);
}

#[test]
fn a_refund_that_was_asked_for_and_not_made_does_not_pass() {
    let world = world(cs_tier_1(), vec![looked_up(), answer("Refunded.")], &[]);
    let status = status(&world);
    let attempt = &status.gates.finalization.attempts[0];
    assert_eq!((attempt.passed, attempt.reasons[0].code), (false, FinalizationCode::GoalNotMet));
    assert!(attempt.reasons[0].detail.contains("process_refund"), "{attempt:?}");
    assert_eq!(status.usage.llm_calls.finalization, 0, "no model is asked about it");
}

#[test]
fn what_comes_after_a_held_call_waits_too() {
    let both = asks(&[
        ("process_refund", json!({"order_id": "A-17", "amount": 900})),
        ("process_refund", json!({"order_id": "A-18", "amount": 5})),
    ]);
    let world = world(cs_tier_1(), vec![looked_up(), both], &[]);
    assert_eq!(status(&world).phase, Phase::AwaitingApproval);
    assert_eq!(world.effects.len(), 0);
}

#[test]
fn a_worker_lost_at_any_event_leads_through_the_same_stages() {
    let whole = refund_world();
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        resumed.play_out();
        let in_flight = whole.names()[cut - 1] == "tool.started";
        let expected = if in_flight { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!(code(&resumed), expected, "after {cut} events");
        if !in_flight {
            let (one, other) = (status(&whole), status(&resumed));
            assert_eq!(
                (&one.gates, &one.result, &one.workflows),
                (&other.gates, &other.result, &other.workflows),
                "{cut}"
            );
        }
    }
}

#[rstest]
#[case::redirect("redirect", Phase::Refused)]
#[case::refuse("refuse", Phase::Refused)]
#[case::escalate("escalate", Phase::Escalated)]
fn a_goal_out_of_domain_ends_as_the_skill_says(#[case] action: &str, #[case] phase: Phase) {
    let mut skill = cs_tier_1();
    skill.intents.as_mut().unwrap().out_of_domain =
        serde_json::from_value(json!({"action": action, "message": "I can only help with orders and refunds"}))
            .unwrap();
    let elsewhere = r#"{"intent": null}"#;
    let world = world(skill, vec![], &[(Stage::Intent, &[elsewhere])]);
    let outcome = world.conversation.outcome().unwrap();
    assert_eq!((outcome.code, outcome.phase()), (OutcomeCode::OutOfDomain, phase));
    assert_eq!(outcome.message, "I can only help with orders and refunds");
    assert_eq!(world.asked, 0);
}

#[test]
fn an_intent_that_cannot_be_read_is_asked_for_once_more_and_then_left_to_a_person() {
    let healed = world(
        cs_tier_1(),
        vec![looked_up(), refunds(5.0), answer("Done.")],
        &[(Stage::Intent, &["I think so", REFUND])],
    );
    assert_eq!(code(&healed), OutcomeCode::Succeeded);
    let lost = world(cs_tier_1(), vec![], &[(Stage::Intent, &["I think so", r#"{"intent": "intent_sing"}"#])]);
    assert_eq!((code(&lost), status(&lost).usage.llm_calls.intent), (OutcomeCode::UserNeeded, 2));
    assert_eq!(lost.asked, 0, "never a guess");
}

#[test]
fn a_required_entity_that_the_goal_does_not_name_needs_a_person() {
    let nameless = r#"{"intent": "intent_refund", "entities": {}}"#;
    let world = world(cs_tier_1(), vec![], &[(Stage::Intent, &[nameless])]);
    let outcome = world.conversation.outcome().unwrap();
    assert_eq!(outcome.code, OutcomeCode::UserNeeded);
    assert!(outcome.message.contains("order_id"), "{}", outcome.message);
}

pub(super) const GOAL_UNMET: &str = r#"{"passed": false, "score": 0.2, "reasons": [{"code": "GOAL_NOT_MET", "detail": "no tracking number"}], "missing_fields": [], "suggested_action": "TOOL_CALL"}"#;

pub(super) fn gate_retries() -> Vec<Answer> {
    let note = |n: u32| asks(&[("note", json!({"order_id": format!("A-{n}")}))]);
    vec![looked_up(), refunds(5.0), answer("One."), note(1), answer("Two."), note(2), answer("Three.")]
}

#[test]
fn a_ruling_that_cannot_be_read_is_asked_for_once_more_and_is_then_a_failed_attempt() {
    let answers = vec![looked_up(), refunds(5.0), answer("Done.")];
    let healed = world(
        cs_tier_1(),
        answers,
        &[(Stage::Finalization, &["fine", r#"{"passed": true, "score": 1}"#]), (Stage::Polish, &["Done."])],
    );
    assert_eq!((code(&healed), status(&healed).gates.finalization.attempts.len()), (OutcomeCode::Succeeded, 1));
    let lost =
        world(cs_tier_1(), gate_retries(), &[(Stage::Finalization, &["fine", "fine", "fine", "fine", "fine", "fine"])]);
    let attempts = status(&lost).gates.finalization.attempts;
    assert_eq!((code(&lost), attempts.len()), (OutcomeCode::GateFailed, 3));
    assert_eq!(attempts[0].suggested_action, Some(SuggestedAction::ToolCall));
}

#[rstest]
#[case::a_number_is_lost("Refunded 50 EUR for A-17.", false)]
#[case::only_words_change("We have refunded 49.9 EUR for A-17 - sorry!", true)]
fn an_answer_that_the_polisher_changed_stands_as_it_was(#[case] polished: &'static str, #[case] taken: bool) {
    let answers = vec![looked_up(), refunds(49.9), answer("Refunded 49.9 EUR for A-17.")];
    let world = world(cs_tier_1(), answers, &[(Stage::Polish, &[polished])]);
    let result = status(&world).result.unwrap();
    let expected = if taken { polished } else { "Refunded 49.9 EUR for A-17." };
    assert_eq!((code(&world), result.text.as_str(), result.polished), (OutcomeCode::Succeeded, expected, taken));
}

#[test]
fn an_answer_that_passed_does_not_fail_for_a_polisher_that_gives_no_answer() {
    let mut world = World::new(run_of(cs_tier_1()), vec![looked_up(), refunds(5.0), answer("Done.")], ALL_WELL);
    world.stages.insert(Stage::Intent, vec![REFUND]);
    let mut events = 0;
    let polishes =
        |world: &World| matches!(next(&world.conversation), Step::CallModel(request) if request.stage == Stage::Polish);
    while !polishes(&world) {
        events += 1;
        assert!(world.log.len() >= events - 1, "it ended before: {:?}", world.names());
        world.play(events);
    }
    world.record(Event::ModelRequested { reserve: 10, stage: Stage::Polish });
    world.record(Event::ModelFailed { kind: ModelFailure::Unavailable, message: "503".into() });
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert!(matches!(world.conversation.finalization().polish(), Some(Polish::Kept(why)) if why.contains("503")));
}

#[test]
fn steps_that_are_no_tools_are_closed_with_evidence() {
    let mut skill = cs_tier_1();
    skill.policy.as_mut().unwrap().workflows = serde_json::from_value(
        json!([{"name": "w", "steps": ["verify_identity", "explain", "process_refund"], "required": true}]),
    )
    .unwrap();
    let verify = asks(&[("verify_identity", order())]);
    let close = |evidence: u64| asks(&[("subgoal_done", json!({"step": "explain", "evidence": evidence}))]);
    // The number that the model reads at the end of the result.
    let first = world(skill.clone(), vec![verify.clone()], &[]);
    let seq = first.names().iter().position(|name| *name == "tool.completed").unwrap() as u64 + 1;
    let told = first
        .conversation
        .turns()
        .iter()
        .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.ends_with(&format!("[evidence: {seq}]"))));
    assert!(told, "{:?}", first.conversation.turns());
    let done = world(
        skill.clone(),
        vec![verify.clone(), close(seq), refunds(5.0), answer("Done.")],
        &[(Stage::Polish, &["Done."])],
    );
    assert_eq!((code(&done), status(&done).workflows[0].open.len()), (OutcomeCode::Succeeded, 0));
    let denied = world(skill, vec![verify, close(2), refunds(5.0), answer("Done.")], &[(Stage::Polish, &["Done."])]);
    assert_eq!(denied.effects.len(), 0, "event 2 is no result of a tool");
}

#[test]
fn a_step_that_turned_out_not_to_apply_completes_a_workflow() {
    let first = world(cs_tier_1(), vec![looked_up()], &[]);
    let seqs: Vec<u64> =
        (1..).zip(first.names()).filter(|(_, name)| *name == "tool.completed").map(|(seq, _)| seq).collect();
    let close =
        asks(&[("subgoal_done", json!({"step": "process_refund", "evidence": seqs[1], "notApplicable": true}))]);
    let world =
        world(cs_tier_1(), vec![looked_up(), close, answer("Not eligible.")], &[(Stage::Polish, &["Not eligible."])]);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(status(&world).workflows[0].not_applicable, ["process_refund"]);
}

#[test]
fn older_results_are_put_aside_when_the_window_is_nearly_full() {
    let long: Tools = |_, _| Reply::Completed(Box::leak("x".repeat(12_000).into_boxed_str()));
    let mut run = run_of(super::super::fixture::skill());
    run.context_window = 8_192;
    let lookup = |n: u32| asks(&[("verify_identity", json!({"order_id": format!("A-{n}")}))]);
    let world = ended(run, vec![lookup(1), lookup(2), lookup(3)], long);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let offloaded = world.names().iter().filter(|name| **name == "result.offloaded").count();
    assert_eq!(offloaded, 2, "the latest result stays whole");
    let lengths: Vec<usize> = world
        .conversation
        .turns()
        .iter()
        .filter_map(|turn| match turn {
            Turn::ToolResult { text, .. } => Some(text.len()),
            Turn::User(_) | Turn::Assistant(_) => None,
        })
        .collect();
    assert!(lengths[0] < 2_048 && lengths[1] < 2_048 && lengths[2] == 12_000, "{lengths:?}");
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn the_persona_is_rendered_with_what_the_job_binds_and_secrets_stay_names() {
    use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
    use bloomery_crds::v1alpha1::ResourceType;
    let mut skill = super::super::fixture::skill();
    skill.resources = serde_json::from_value(json!([
        {"name": "codebase", "type": "filesystem", "required": true}, {"name": "token", "type": "credential"},
    ]))
    .unwrap();
    skill.role.as_mut().unwrap().persona = Some("You work at {{resources.codebase}}.".into());
    let mut run = run_of(skill);
    let key = KeyFile { path: "/secrets/token".into(), secret: "ci".into(), key: "token".into() };
    run.resources = vec![
        BoundResource {
            name: "codebase".into(),
            kind: ResourceType::Filesystem,
            source: ResourceSource::Mount { path: "/resources/codebase".into(), read_only: true },
        },
        BoundResource { name: "token".into(), kind: ResourceType::Credential, source: ResourceSource::Secret(key) },
    ];
    let world = ended(run, vec![], ALL_WELL);
    assert!(world.conversation.system().unwrap().contains("You work at /resources/codebase."));
    let bound = world.log.iter().find(|line| line.contains("resources.bound")).unwrap();
    assert!(bound.contains("\"rendering\":\"/resources/codebase\"") && !bound.contains("/secrets"), "{bound}");
}
