//! The calls of an answer.

mod children;
mod facts;

use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::next::next;
use crate::run::Run;
use crate::stages::calls::Settlement;
use crate::step::Step;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{GateReason, ResourceType, Stage, Verdict};
use rstest::rstest;
use serde_json::json;

#[test]
fn a_call_with_effect_whose_answer_was_lost_is_never_sent_again() {
    let world =
        ended(run(), refund(), |tool, _| if tool == "process_refund" { Reply::Lost } else { Reply::Completed("ok") });
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
    assert_eq!(world.effects.len(), 1);
    assert_eq!(world.conversation.outcome().unwrap().phase(), Phase::Escalated);
}

#[test]
fn an_idempotent_call_is_sent_again_with_the_same_key() {
    let world =
        ended(
            run(),
            vec![asks(&[("note", order())])],
            |_, times| {
                if times < 3 { Reply::Lost } else { Reply::Completed("noted") }
            },
        );
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(world.effects.len(), 3);
    assert!(world.effects.iter().all(|effect| effect == &world.effects[0]));
}

#[test]
fn a_retry_knows_that_the_call_was_sent_before() {
    let mut world = World::new(run(), vec![asks(&[("note", order())])], |_, _| Reply::Lost);
    world.play_until(|conversation| matches!(next(conversation), Step::RunEffect(_)));
    let sent_before = |world: &World| match next(&world.conversation) {
        Step::RunEffect(call) => Some(call.sent_before),
        _ => None,
    };
    assert_eq!(sent_before(&world), Some(false));
    world.play(world.log.len() + 2);
    assert_eq!(sent_before(&world), Some(true));
}

#[test]
fn a_lost_read_is_repeated_and_never_escalates() {
    let world = ended(run(), vec![asks(&[("verify_identity", order())])], |_, _| Reply::Lost);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(world.names().iter().filter(|name| **name == "tool.indeterminate").count(), 3);
}

#[test]
fn effects_after_a_failed_effect_are_skipped_but_reads_are_not() {
    let answers = vec![asks(&[
        ("process_refund", order()),
        ("note", order()),
        ("verify_identity", order()),
        ("note", json!({"order_id": "B"})),
    ])];
    let world =
        ended(
            run(),
            answers,
            |tool, _| if tool == "process_refund" { Reply::Failed("no") } else { Reply::Completed("ok") },
        );
    assert_eq!(world.effects.len(), 1);
    let names = world.names();
    assert_eq!(names.iter().filter(|name| **name == "tool.skipped").count(), 2);
    assert_eq!(names.iter().filter(|name| **name == "tool.completed").count(), 1);
    assert_history_is_well_formed(&world.conversation);
}

#[rstest]
#[case::unknown("drop_tables", order(), GateReason::Catalogue)]
#[case::blocked("delete_customer", order(), GateReason::Policy)]
#[case::against_the_schema("process_refund", json!({"amount": "much"}), GateReason::Schema)]
#[case::no_object("process_refund", json!([1]), GateReason::Schema)]
fn a_denied_call_is_never_sent_and_the_model_reads_why(
    #[case] tool: &str,
    #[case] arguments: serde_json::Value,
    #[case] layer: GateReason,
) {
    let world = ended(run(), vec![asks(&[(tool, arguments)])], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded, "the model may go on");
    assert_eq!(world.effects, []);
    let last = &world.conversation.shared.calls.rulings().last[0];
    assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(layer)));
    assert!(
        world
            .conversation
            .turns()
            .iter()
            .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.starts_with("Denied:")))
    );
}

/// A placeholder replaces the secret, so the arguments are invalid. The model reads about the secret only.
#[rstest]
#[case::that_cannot_be_read(r#"{"order_id": "A-17", "amount": [redacted: pin]}"#)]
#[case::that_is_against_the_schema(r#"{"order_id": "A-17", "amount": "[redacted: pin]"}"#)]
fn arguments_with_a_secret_are_denied_for_the_secret_only(#[case] arguments: &str) {
    let mut answer = asks(&[("process_refund", json!({}))]);
    answer.calls[0].arguments = arguments.into();
    answer.calls[0].secrets = vec!["pin".into()];
    let world = ended(run(), vec![answer], ALL_WELL);
    assert_eq!(world.effects, []);
    let text = world.conversation.turns().iter().find_map(|turn| match turn {
        Turn::ToolResult { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = text.unwrap();
    assert!(text.contains("contain the value of pin") && !text.contains("Schema") && !text.contains("JSON"), "{text}");
}

/// Returns a Job that binds an API. The rules allow reading orders, and creating notes and refunds; a refund needs approval.
fn with_endpoint() -> Run {
    let mut run = run();
    run.skill.resources = serde_json::from_value(json!([{"name": "shop", "type": "api_endpoint", "rules": [
        {"methods": ["GET"], "paths": ["/orders/*"]}, {"methods": ["POST"], "paths": ["/notes", "/refunds"]},
    ]}]))
    .unwrap();
    let approval = json!({"toolId": "http_request", "when": "path == '/refunds'", "action": "require_approval"});
    run.skill.policy.get_or_insert_default().approvals = vec![serde_json::from_value(approval).unwrap()];
    let source = ResourceSource::Value("https://shop.example/v1".into());
    run.resources = vec![BoundResource { name: "shop".into(), kind: ResourceType::ApiEndpoint, source }];
    run
}

#[rstest]
#[case::another_method("http_request", json!({"method": "DELETE", "path": "/orders/7"}), GateReason::Endpoint)]
#[case::another_path("http_get", json!({"path": "/customers/7"}), GateReason::Endpoint)]
#[case::outside_the_base("http_get", json!({"path": "/orders/../../admin"}), GateReason::Endpoint)]
#[case::a_reserved_header("http_get", json!({"path": "/orders/7", "headers": {"Authorization": "x"}}), GateReason::Endpoint)]
#[case::a_change_by_a_tool_that_reads("http_get", json!({"method": "POST", "path": "/notes"}), GateReason::Endpoint)]
fn an_api_call_that_the_rules_do_not_allow_is_denied_with_the_reason(
    #[case] tool: &str,
    #[case] arguments: serde_json::Value,
    #[case] layer: GateReason,
) {
    let world = ended(with_endpoint(), vec![asks(&[(tool, arguments)])], ALL_WELL);
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let last = &world.conversation.shared.calls.rulings().last[0];
    assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(layer)), "{last:?}");
}

#[test]
fn an_allowed_api_call_is_sent_held_or_lost_as_any_other_call() {
    let reads = ("http_get", json!({"path": "/orders/7"}));
    let notes = ("http_request", json!({"method": "POST", "path": "/notes", "json": {"text": "x"}}));
    let world = ended(with_endpoint(), vec![asks(&[reads, notes.clone()])], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let made: Vec<&str> = world.effects.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(made, ["http_request"]);

    let lost = ended(with_endpoint(), vec![asks(&[notes])], |_, _| Reply::Lost);
    assert_eq!((code(&lost), lost.effects.len()), (OutcomeCode::ToolIndeterminate, 1));

    let refunds = ("http_request", json!({"method": "POST", "path": "/refunds", "json": {}}));
    let mut held = World::new(with_endpoint(), vec![asks(&[refunds])], ALL_WELL);
    held.play_out();
    assert_eq!((held.conversation.shared.calls.rulings().held, held.effects.len()), (1, 0));
}

#[test]
fn duplicate_keys_in_arguments_are_denied() {
    let mut answer = asks(&[("process_refund", order())]);
    answer.calls[0].arguments = r#"{"order_id":"A","order_id":"B"}"#.into();
    let world = ended(run(), vec![answer], ALL_WELL);
    assert_eq!((world.effects.len(), world.conversation.shared.calls.rulings().denied), (0, 1));
}

#[test]
fn every_reason_of_the_strictest_verdict_is_kept() {
    let mut limited = run();
    limited.limits.tool_calls = 0;
    let mut world = World::new(limited, vec![asks(&[("delete_customer", json!({}))])], ALL_WELL);
    world.play_out();
    let line = world.log.iter().find(|line| line.contains("tool.ruled")).unwrap();
    for layer in ["Policy", "Schema", "Limit"] {
        assert!(line.contains(layer), "{line}");
    }
}

#[test]
fn a_skipped_call_is_settled_as_skipped() {
    let answers = vec![asks(&[("drop_tables", order()), ("process_refund", order())])];
    let mut world = World::new(run(), answers, ALL_WELL);
    world.play(5);
    while !world.conversation.calls().is_empty() {
        let skipped =
            world.conversation.calls().iter().any(|call| call.state == super::CallState::Settled(Settlement::Skipped));
        if skipped {
            break;
        }
        let length = world.log.len() + 1;
        world.play(length);
    }
    assert_eq!(world.effects, []);
    assert!(world.names().contains(&"tool.skipped"));
}

#[test]
fn a_call_in_a_cut_off_answer_is_never_made() {
    let mut cut = asks(&[("process_refund", order())]);
    cut.cut = true;
    let world = ended(run(), vec![cut], ALL_WELL);
    assert_eq!((world.effects.len(), world.conversation.shared.calls.rulings().denied), (0, 1));
}

#[test]
fn the_same_call_three_times_in_one_answer_is_one_failure() {
    let thrice = [("verify_identity", order()), ("verify_identity", order()), ("verify_identity", order())];
    let world = ended(run(), vec![asks(&thrice)], |_, _| Reply::Failed("not now"));
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn a_call_out_of_the_order_of_a_workflow_is_denied_with_the_missing_step() {
    let world = staged_world(
        cs_tier_1(),
        vec![refunds(49.9), looked_up(), refunds(49.9), answer("Done.")],
        &[(Stage::Polish, &["Done."])],
    );
    let gate = status(&world).gates.pre_tool;
    assert_eq!((gate.denied, gate.last[0].rule), (1, Some(GateReason::Workflow)));
    let text = world.conversation.turns().iter().find_map(|turn| match turn {
        Turn::ToolResult { text, .. } => Some(text.clone()),
        Turn::User(_) | Turn::Assistant(_) => None,
    });
    assert!(text.unwrap().contains("\"verify_identity\""));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 1));
}

#[test]
fn reads_that_a_workflow_orders_run_in_order_also_under_their_aliases() {
    let mut skill = cs_tier_1();
    for tool in &mut skill.tools {
        tool.name = tool.name.replace('_', ".");
    }
    let policy = skill.policy.as_mut().unwrap();
    policy.approvals.clear();
    for step in &mut policy.workflows[0].steps {
        *step = step.replace('_', ".");
    }
    let mut world = World::new(run_of(skill), Vec::new(), ALL_WELL);
    for tool in &mut world.listed {
        tool.name = tool.name.replace('_', ".");
    }
    world.stages.insert(Stage::Intent, vec![TRACK]);
    world.play_until(|conversation| conversation.system().is_some());
    let alias =
        |name: &str| world.conversation.visible_tools().iter().find(|tool| tool.name == name).unwrap().alias.clone();
    let (verify, check) = (alias("verify.identity"), alias("check.eligibility"));
    assert_ne!(verify, "verify.identity");
    world.answers = vec![asks(&[(&verify, order()), (&check, order())]), answer("Done.")];
    world.play_out();
    assert_eq!(status(&world).gates.pre_tool.denied, 0);
    assert_eq!(status(&world).workflows[0].done, ["verify.identity", "check.eligibility"]);
}

#[test]
fn steps_that_are_not_tools_are_closed_with_evidence() {
    let mut skill = cs_tier_1();
    skill.policy.as_mut().unwrap().workflows = serde_json::from_value(
        json!([{"name": "w", "steps": ["verify_identity", "explain", "process_refund"], "required": true}]),
    )
    .unwrap();
    let verify = asks(&[("verify_identity", order())]);
    let close = |evidence: u64| asks(&[("subgoal_done", json!({"step": "explain", "evidence": evidence}))]);
    // The evidence number at the end of the result.
    let first = staged_world(skill.clone(), vec![verify.clone()], &[]);
    let seq = first.names().iter().position(|name| *name == "tool.completed").unwrap() as u64 + 1;
    let has_evidence = first
        .conversation
        .turns()
        .iter()
        .any(|turn| matches!(turn, Turn::ToolResult { text, .. } if text.ends_with(&format!("[evidence: {seq}]"))));
    assert!(has_evidence, "{:?}", first.conversation.turns());
    let done = staged_world(
        skill.clone(),
        vec![verify.clone(), close(seq), refunds(5.0), answer("Done.")],
        &[(Stage::Polish, &["Done."])],
    );
    assert_eq!((code(&done), status(&done).workflows[0].open.len()), (OutcomeCode::Succeeded, 0));
    let denied =
        staged_world(skill, vec![verify, close(2), refunds(5.0), answer("Done.")], &[(Stage::Polish, &["Done."])]);
    assert_eq!(denied.effects.len(), 0, "event 2 is no result of a tool");
}

#[test]
fn a_step_that_does_not_apply_completes_a_workflow() {
    let first = staged_world(cs_tier_1(), vec![looked_up()], &[]);
    let seqs: Vec<u64> =
        (1..).zip(first.names()).filter(|(_, name)| *name == "tool.completed").map(|(seq, _)| seq).collect();
    let close =
        asks(&[("subgoal_done", json!({"step": "process_refund", "evidence": seqs[1], "notApplicable": true}))]);
    let world = staged_world(
        cs_tier_1(),
        vec![looked_up(), close, answer("Not eligible.")],
        &[(Stage::Polish, &["Not eligible."])],
    );
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(status(&world).workflows[0].not_applicable, ["process_refund"]);
}

/// A permissive schema, and a Skill that declares `order_id` and `amount`.
#[rstest]
#[case::as_declared("amount", None)]
#[case::of_the_server("reason", None)]
#[case::in_another_case("Amount", Some("the argument \"Amount\" must be written \"amount\""))]
#[case::of_nobody(
    "ammount",
    Some("neither the Skill nor the server declares the argument \"ammount\". Did you mean \"amount\"?")
)]
fn an_argument_that_a_rule_cannot_mean_is_denied_where_the_skill_declares_inputs(
    #[case] name: &str,
    #[case] reason: Option<&str>,
) {
    let mut run = run();
    let inputs = json!([{"name": "order_id", "type": "string"}, {"name": "amount", "type": "number"}]);
    for (inputs, reason) in [(inputs, reason), (json!([]), None)] {
        run.skill.tools[2].inputs = serde_json::from_value(inputs).unwrap();
        let call = asks(&[("process_refund", json!({"order_id": "A-17", name: 600}))]);
        let mut world = World::new(run.clone(), vec![call, good_answer()], ALL_WELL);
        world.listed[2].input_schema = json!({"type": "object", "properties": {"reason": {}, "Amount": {}}});
        world.play_out();
        let ruling = world.conversation.shared.calls.rulings().last[0].clone();
        assert_eq!(ruling.reason.as_deref(), reason, "{ruling:?}");
    }
}

/// The schema lists the fields of `payment`, and accepts others.
#[rstest]
#[case::as_listed(json!({"payment": {"amount": 1, "note": "x"}}), None)]
#[case::another_case(json!({"payment": {"Amount": 600}}), Some("the field \"Amount\" differs from \"amount\" only in its case"))]
#[case::both_in_a_list(
    json!({"parts": [{"cost": 1, "Cost": 600}]}), Some("the field \"Cost\" differs from \"cost\" only in its case")
)]
#[case::without_a_variant(json!({"parts": [{"cost": 1, "costs": 600}]}), None)]
fn a_field_within_an_argument_is_not_written_in_another_case(
    #[case] arguments: serde_json::Value,
    #[case] reason: Option<&str>,
) {
    let mut run = run();
    let inputs = json!([{"name": "payment", "type": "object"}, {"name": "parts", "type": "array"}]);
    run.skill.tools[2].inputs = serde_json::from_value(inputs).unwrap();
    let mut world = World::new(run, vec![asks(&[("process_refund", arguments)]), good_answer()], ALL_WELL);
    let payment = json!({"type": "object", "properties": {"amount": {"type": "number"}}});
    world.listed[2].input_schema = json!({"type": "object", "properties": {"payment": payment, "parts": {}}});
    world.play_out();
    let ruling = world.conversation.shared.calls.rulings().last[0].clone();
    assert_eq!(ruling.reason.as_deref(), reason, "{ruling:?}");
}

/// A tool that no rule names. `order_id` is its only argument.
#[rstest]
#[case::denied(json!({"effects": "deny"}), "process_refund", Verdict::Deny)]
#[case::held(json!({"effects": "require_approval"}), "process_refund", Verdict::Hold)]
#[case::allowed(json!({"effects": "allow"}), "process_refund", Verdict::Allow)]
#[case::read_only(json!({"effects": "deny"}), "verify_identity", Verdict::Allow)]
#[case::named_by_an_approval(
    json!({"effects": "deny", "approvals": [{"toolId": "process_refund", "when": "order_id == 'B-1'"}]}), "process_refund", Verdict::Allow
)]
#[case::matched_by_a_prefix(
    json!({"effects": "deny", "approvals": [{"toolId": "process_*", "when": "order_id == 'B-1'"}]}), "process_refund", Verdict::Deny
)]
#[case::named_by_a_rule_that_denies(
    json!({"effects": "require_approval", "approvals": [{"toolId": "process_refund", "when": "order_id == 'B-1'", "action": "deny"}]}),
    "process_refund", Verdict::Hold
)]
#[case::named_by_a_limit(
    json!({"effects": "deny", "limits": [{"tool": "process_refund", "count": true, "per": "job", "max": 5}]}), "process_refund", Verdict::Deny
)]
#[case::named_by_a_guardrail(
    json!({"effects": "deny", "guardrails": {"never": ["process_refund requires approval"]}}), "process_refund", Verdict::Hold
)]
fn a_call_with_effect_that_no_rule_names_is_ruled_by_the_default(
    #[case] policy: serde_json::Value,
    #[case] tool: &str,
    #[case] expected: Verdict,
) {
    let mut run = run();
    run.skill.policy = serde_json::from_value(policy).unwrap();
    let mut world = World::new(run, vec![asks(&[(tool, order())]), good_answer()], ALL_WELL);
    world.play_out();
    assert_eq!(world.conversation.shared.calls.rulings().last[0].verdict, expected);
}

#[rstest]
#[case::not_named(json!(["verify_*", "check_eligibility"]), Verdict::Deny)]
#[case::named(json!(["process_*"]), Verdict::Allow)]
#[case::no_list(json!(null), Verdict::Allow)]
fn an_intent_narrows_the_tools_that_may_be_called(#[case] tools: serde_json::Value, #[case] expected: Verdict) {
    let mut run = run();
    let intents =
        json!({"supported": [{"id": "track", "tools": tools}, {"id": "refund", "tools": ["process_refund"]}]});
    run.skill.intents = serde_json::from_value(intents).unwrap();
    let mut world = World::new(run, vec![asks(&[("process_refund", order())]), good_answer()], ALL_WELL);
    world.stages.insert(Stage::Intent, vec![r#"{"intent": "track", "entities": {}}"#]);
    world.play_out();
    let ruling = world.conversation.shared.calls.rulings().last[0].clone();
    assert_eq!(ruling.verdict, expected, "{ruling:?}");
    let reason = "the intent \"track\" does not allow the tool \"process_refund\"";
    assert_eq!(ruling.reason.as_deref() == Some(reason), expected == Verdict::Deny, "{ruling:?}");
}

/// A declaration of the tool, beside that of its prefix: `order_id` begins with `A`, and `amount` is at most 500.
#[rstest]
#[case::within_both(json!({"order_id": "A-17", "amount": 500}), Verdict::Allow)]
#[case::beyond_that_of_the_prefix(json!({"order_id": "A-17", "amount": 501}), Verdict::Deny)]
#[case::beyond_that_of_the_tool(json!({"order_id": "B-1", "amount": 5}), Verdict::Deny)]
fn the_inputs_of_all_matching_declarations_apply(#[case] arguments: serde_json::Value, #[case] expected: Verdict) {
    let mut run = run();
    run.skill.tools = serde_json::from_value(json!([
        {"name": "process_*", "inputs": [{"name": "amount", "type": "number", "minimum": 0, "maximum": 500}]},
        {"name": "process_refund", "inputs": [{"name": "order_id", "type": "string", "pattern": "A-[0-9]+"}]},
    ]))
    .unwrap();
    let mut world = World::new(run, vec![asks(&[("process_refund", arguments)]), good_answer()], ALL_WELL);
    world.play_out();
    assert_eq!(world.conversation.shared.calls.rulings().last[0].verdict, expected);
}

/// The inputs that the Skill declares for `process_refund`, and arguments that break one of their rules, or none.
#[rstest]
#[case::as_declared(json!({"order_id": "A-17", "amount": 500}), None)]
#[case::a_minimum(json!({"order_id": "A-17", "amount": 0}), Some("the input \"amount\" is not as the Skill declares it: 0 is less than the minimum of 1"))]
#[case::a_maximum(json!({"order_id": "A-17", "amount": 500.01}), Some("the input \"amount\" is not as the Skill declares it: 500.01 is greater than the maximum of 500"))]
#[case::missing(json!({"amount": 5}), Some("the Skill requires the input \"order_id\", which is missing"))]
#[case::null(json!({"order_id": null, "amount": 5}), Some("the Skill requires the input \"order_id\", which is missing"))]
#[case::an_optional_null(json!({"order_id": "A-17", "amount": null}), None)]
#[case::another_type(json!({"order_id": 17}), Some("the input \"order_id\" is not as the Skill declares it: 17 is not of type \"string\""))]
#[case::a_pattern(json!({"order_id": "A-17x"}), Some("the input \"order_id\" is not as the Skill declares it: \"A-17x\" does not match \"^(?:[A-Z]-[0-9]+|none)$\""))]
#[case::a_part_of_an_alternative(json!({"order_id": "not none"}), Some("the input \"order_id\" is not as the Skill declares it: \"not none\" does not match \"^(?:[A-Z]-[0-9]+|none)$\""))]
#[case::a_line_break(json!({"order_id": "A-17\n"}), Some("the input \"order_id\" is not as the Skill declares it: \"A-17\\n\" does not match \"^(?:[A-Z]-[0-9]+|none)$\""))]
#[case::a_value(json!({"order_id": "A-17", "currency": "EUR"}), None)]
#[case::no_value(json!({"order_id": "A-17", "currency": "eur"}), Some("the input \"currency\" is not as the Skill declares it: \"eur\" is not one of \"EUR\" or \"USD\""))]
#[case::beyond_doubles(json!({"order_id": "A-17", "units": 9_007_199_254_740_993_u64}), Some("the input \"units\" is not as the Skill declares it: 9007199254740993 is greater than the maximum of 9007199254740992"))]
#[case::beyond_doubles_of_a_double(json!({"order_id": "A-17", "shares": 9_007_199_254_740_993_u64}), Some("the input \"shares\" is not as the Skill declares it: 9007199254740993 is greater than the maximum of 9007199254740992.0"))]
fn declared_inputs_are_rules_for_calls(#[case] arguments: serde_json::Value, #[case] reason: Option<&str>) {
    let mut run = run();
    let inputs = json!([
        {"name": "order_id", "type": "string", "required": true, "pattern": "[A-Z]-[0-9]+|none"},
        {"name": "amount", "type": "number", "minimum": 1, "maximum": 500},
        {"name": "currency", "type": "string", "enum": ["EUR", "USD"]},
        {"name": "units", "type": "integer", "maximum": 9_007_199_254_740_992_u64},
        {"name": "shares", "type": "number", "maximum": 9_007_199_254_740_992.0},
    ]);
    run.skill.tools[2].inputs = serde_json::from_value(inputs).unwrap();
    let mut world = World::new(run, vec![asks(&[("process_refund", arguments)]), good_answer()], ALL_WELL);
    world.listed[2].input_schema = json!({"type": "object", "additionalProperties": true});
    world.play_out();
    let ruling = world.conversation.shared.calls.rulings().last[0].clone();
    let layer = reason.map(|_| GateReason::Schema);
    assert_eq!((ruling.reason.as_deref(), ruling.rule), (reason, layer), "{ruling:?}");
    assert_eq!(world.effects.len(), usize::from(reason.is_none()));
}

#[rstest]
#[case::no_regular_expression("[")]
#[case::beyond_the_parentheses("a)|(b")]
#[case::a_back_reference("(a)\\1")]
#[case::too_large("(a{900}){900}")]
fn an_input_with_an_unusable_pattern_accepts_no_value(#[case] pattern: &str) {
    let mut run = run();
    let inputs = json!([{"name": "order_id", "type": "string", "pattern": pattern}]);
    run.skill.tools[2].inputs = serde_json::from_value(inputs).unwrap();
    let world = ended(run, vec![asks(&[("process_refund", json!({"order_id": "a"}))])], ALL_WELL);
    assert_eq!(world.effects, []);
}
