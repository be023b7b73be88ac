//! Calls that invoke Skills.

use super::*;
use crate::event::{Answer, CallId, Event};
use crate::fixture::attended::{attended, results};
use bloomery_crds::children::{ChildProgress, ChildRequest, MAX_CHILDREN, VisibleSkill};
use bloomery_crds::v1alpha1::{ChildrenUsage, Limits, LlmCalls, Usage};

/// Returns a Job whose Skill may invoke every other one.
fn delegating() -> Run {
    let mut run = Run { can_have_children: true, ..run() };
    run.skill.skills = vec!["*".into()];
    run
}

fn invoke(name: &str) -> (&'static str, serde_json::Value) {
    ("use_skill", json!({"action": "invoke", "name": name, "goal": "Refund A-17"}))
}

fn skills() -> Vec<VisibleSkill> {
    let skill = |name: &str, resources: &[&str]| VisibleSkill {
        name: name.into(),
        description: "Helps".into(),
        resources: resources.iter().map(|name| (*name).into()).collect(),
    };
    vec![skill("billing", &[]), skill("ledger-reader", &["ledger"])]
}

fn ended(code: OutcomeCode, usage: Usage) -> ChildProgress {
    ChildProgress::Ended {
        code,
        message: "It has ended.".into(),
        text: Some("Refunded.".into()),
        fields: serde_json::from_value(json!({"status": "refunded"})).unwrap(),
        usage,
    }
}

fn succeeds(_: &ChildRequest) -> ChildProgress {
    let children = Some(ChildrenUsage { steps: 1, tool_calls: 1, tokens: 100, seconds: 1 });
    let llm_calls = LlmCalls { plan: 2, finalization: 1, ..LlmCalls::default() };
    let usage = Usage {
        llm_calls,
        input_tokens: 500,
        output_tokens: 50,
        tool_calls: 3,
        seconds: 4,
        children,
        ..Usage::default()
    };
    ended(OutcomeCode::Succeeded, usage)
}

/// Returns a conversation that is played out.
fn played(run: Run, answers: Vec<Answer>, child: fn(&ChildRequest) -> ChildProgress) -> World {
    let mut world = World::new(run, answers, ALL_WELL);
    (world.skills, world.child) = (skills(), child);
    world.play_out();
    world
}

fn spent(world: &World) -> ChildrenUsage {
    world.conversation.budget().delegated()
}

#[test]
fn the_end_of_a_child_is_the_result_of_the_call_and_its_usage_counts_for_the_job() {
    let world = played(delegating(), vec![asks(&[invoke("billing")])], succeeds);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let of_call: Vec<_> =
        world.names().into_iter().filter(|name| name.starts_with("tool.") || name.starts_with("child.")).collect();
    assert_eq!(
        of_call,
        ["tool.requested", "tool.ruled", "tool.started", "child.started", "child.completed", "tool.completed"]
    );
    let result: serde_json::Value = serde_json::from_str(results(&world.conversation)[0]).unwrap();
    assert_eq!((&result["outcome"], &result["text"]), (&json!("Succeeded"), &json!("Refunded.")));
    assert_eq!((&result["skill"], &result["fields"]["status"]), (&json!("billing"), &json!("refunded")));
    let total = ChildrenUsage { steps: 3, tool_calls: 4, tokens: 650, seconds: 5 };
    assert_eq!(spent(&world), total);
    let usage = status(&world).usage;
    assert_eq!((usage.children, usage.tool_calls), (Some(total), 1), "its own usage does not include that of children");
    assert_eq!(usage.with_children().steps, 3 + usage.llm_calls.plan);
}

#[test]
fn a_child_that_failed_completes_the_call_and_later_calls_run() {
    let answer = asks(&[invoke("billing"), ("process_refund", order())]);
    let world = played(delegating(), vec![answer], |_| ended(OutcomeCode::GateFailed, Usage::default()));
    let results = results(&world.conversation);
    assert!(results[0].contains("\"outcome\":\"GateFailed\""), "{results:?}");
    assert_eq!((results[1], world.effects.len()), ("ok", 1));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_refused_child_fails_the_call_and_costs_nothing() {
    let refused = |_: &ChildRequest| ChildProgress::Refused { reason: "The Skill billing is not ready.".into() };
    let world = played(delegating(), vec![asks(&[invoke("billing"), ("process_refund", order())])], refused);
    let results = results(&world.conversation);
    assert_eq!(results[0], "Failed: The Skill billing is not ready.");
    assert!(results[1].starts_with("Skipped:"), "{results:?}");
    assert_eq!((code(&world), spent(&world)), (OutcomeCode::Succeeded, ChildrenUsage::default()));
}

#[test]
fn a_deleted_child_is_a_lost_call_and_its_limits_count_as_spent() {
    let world = played(delegating(), vec![asks(&[invoke("billing")])], |_| ChildProgress::Deleted);
    assert_eq!(code(&world), OutcomeCode::ToolIndeterminate);
    let message = &world.conversation.outcome().unwrap().message;
    assert!(message.contains("of use_skill was sent") && message.contains("was deleted before it ended"), "{message}");
    assert_eq!(spent(&world), ChildrenUsage { steps: 25, tool_calls: 50, tokens: 99_945, seconds: 900 });
}

/// Returns the request of a conversation that waits for its child.
fn awaited(world: &World) -> ChildRequest {
    let Step::AwaitChild(request) = next(&world.conversation) else { panic!("{:?}", world.names()) };
    request
}

#[test]
fn a_child_that_takes_long_parks_the_job_and_is_requested_again_not_started_again() {
    let mut first = World::new(delegating(), vec![asks(&[invoke("billing")])], ALL_WELL);
    first.skills = skills();
    first.play_until(|conversation| matches!(next(conversation), Step::AwaitChild(_)));
    let request = awaited(&first);
    assert_eq!((request.skill.as_str(), request.goal.as_str()), ("billing", "Refund A-17"));
    let duration = Some("900s".parse().unwrap());
    let half = Limits { steps: Some(25), tool_calls: Some(50), tokens: Some(99_945), duration };
    assert_eq!(request.limits, half);
    first.play_out();
    assert_eq!(first.names().last(), Some(&"parked"));
    // The reserve counts while the child is open.
    assert_eq!(first.conversation.budget().steps(), 1 + 25);
    let mut second = first.resumed_from(first.log.len());
    assert_eq!(awaited(&second), request);
    second.child = succeeds;
    second.play_out();
    assert_eq!(code(&second), OutcomeCode::Succeeded);
    for name in ["tool.started", "child.started", "child.completed"] {
        assert_eq!(second.names().iter().filter(|other| **other == name).count(), 1, "{name}");
    }
}

#[test]
fn workers_that_crash_while_a_child_is_open_end_as_a_crash_loop() {
    let mut world = World::new(delegating(), vec![asks(&[invoke("billing")])], ALL_WELL);
    world.skills = skills();
    world.play_out();
    let mut world = world.resumed_from(world.log.len());
    for epoch in 3..6 {
        assert!(matches!(next(&world.conversation), Step::AwaitChild(_)), "epoch {epoch}");
        world.record(Event::EpochStarted { epoch, attempt: 9, after_disruption: false });
    }
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::CrashLoop);
}

#[test]
fn a_worker_that_is_lost_at_any_event_leads_to_one_child() {
    let whole = played(delegating(), vec![asks(&[invoke("billing")])], succeeds);
    for events in 1..whole.log.len() {
        let mut world = whole.resumed_from(events);
        world.play_out();
        let count = |name: &str| world.names().iter().filter(|other| **other == name).count();
        // A worker writes both in one segment.
        let is_between = whole.names()[events - 1] == "tool.started";
        let expected = if is_between { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!((code(&world), count("tool.started")), (expected, 1), "after {events}: {:?}", world.names());
        assert_eq!(count("child.started"), usize::from(!is_between), "after {events}");
    }
}

#[test]
fn a_list_of_skills_is_a_read_and_no_evidence() {
    let list = ("use_skill", json!({"action": "list"}));
    let world = played(delegating(), vec![asks(&[list.clone(), list])], succeeds);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert!(!world.names().contains(&"tool.started"), "{:?}", world.names());
    assert_eq!((world.effects.len(), world.conversation.shared.evidence_at), (0, 0));
}

#[rstest]
#[case::invokes(json!({"action": "invoke", "name": "billing", "goal": "x"}), Verdict::Deny)]
#[case::invokes_by_name(json!({"action": "invoke", "name": "list"}), Verdict::Deny)]
#[case::lists(json!({"action": "list"}), Verdict::Allow)]
fn the_default_for_effects_applies_to_invocations(#[case] arguments: serde_json::Value, #[case] expected: Verdict) {
    let mut run = delegating();
    run.skill.policy = serde_json::from_value(json!({"effects": "deny"})).unwrap();
    let world = played(run, vec![asks(&[("use_skill", arguments)])], succeeds);
    assert_eq!(world.conversation.shared.calls.rulings().last[0].verdict, expected);
}

#[test]
fn an_intent_and_a_limit_apply_to_invocations() {
    let mut run = delegating();
    let intents = json!({"supported": [{"id": "track", "tools": ["verify_*"]}]});
    run.skill.intents = serde_json::from_value(intents).unwrap();
    let mut world = World::new(run, vec![asks(&[invoke("billing")])], ALL_WELL);
    world.stages.insert(Stage::Intent, vec![r#"{"intent": "track", "entities": {}}"#]);
    world.play_out();
    let ruling = world.conversation.shared.calls.rulings().last[0].clone();
    assert_eq!(ruling.reason.as_deref(), Some("the intent \"track\" does not allow the tool \"use_skill\""));

    let mut run = delegating();
    let limits = json!({"limits": [{"tool": "use_skill", "count": true, "per": "job", "max": 1}]});
    run.skill.policy = serde_json::from_value(limits).unwrap();
    let world = played(run, vec![asks(&[invoke("billing")]), asks(&[invoke("billing")])], succeeds);
    let rulings = world.conversation.shared.calls.rulings();
    assert_eq!((rulings.allowed, rulings.held + rulings.denied), (1, 1), "{rulings:?}");
}

#[rstest]
#[case::no_rule(json!({}), "billing", None)]
#[case::a_part_of_the_name(json!({}), "bill", None)]
#[case::a_part_of_a_name_that_a_rule_denies(
    json!({"approvals": [{"toolId": "use_skill", "when": "name == 'billing'", "action": "deny"}]}),
    "bill", Some("Failed: The name is that of the Skill billing. Invoke it by its exact name.")
)]
#[case::a_part_of_a_name_that_a_rule_allows(
    json!({"approvals": [{"toolId": "use_skill", "when": "name == 'ledger-reader'", "action": "deny"}]}), "bill", None
)]
fn rules_apply_to_the_exact_name_of_the_skill(
    #[case] policy: serde_json::Value,
    #[case] name: &str,
    #[case] failure: Option<&str>,
) {
    let mut run = delegating();
    run.skill.policy = serde_json::from_value(policy).unwrap();
    let world = played(run, vec![asks(&[invoke(name)])], succeeds);
    let results = results(&world.conversation);
    assert_eq!(Some(results[0]).filter(|result| result.starts_with("Failed")), failure, "{results:?}");
}

#[test]
fn a_person_approves_an_invocation() {
    let run = Run { can_have_children: true, ..attended() };
    let mut run = Run { skill: delegating().skill, ..run };
    run.skill.policy =
        serde_json::from_value(json!({"approvals": [{"toolId": "use_skill", "approver": "lead"}]})).unwrap();
    let world = played(run, vec![asks(&[invoke("billing")])], succeeds);
    assert_eq!(world.conversation.shared.calls.held().unwrap().approvers, ["lead"]);
    assert!(!world.names().contains(&"child.started"));
}

#[rstest]
#[case::not_bound(json!({"resources": ["shop"]}), "billing", "Failed: You have no resource \"shop\", so you cannot pass it.")]
#[case::not_passed(json!({}), "ledger", "Failed: The Skill ledger-reader needs the resources ledger: pass them in resources.")]
#[case::no_goal(json!({"goal": " "}), "billing", "Failed: The argument goal is missing.")]
#[case::unknown(json!({}), "refunds", "Failed: No Skill that you may invoke matches \"refunds\".")]
fn an_invocation_that_cannot_be_made_fails_before_it_starts(
    #[case] changes: serde_json::Value,
    #[case] name: &str,
    #[case] failure: &str,
) {
    let (tool, mut arguments) = invoke(name);
    arguments.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let world = played(delegating(), vec![asks(&[(tool, arguments)])], succeeds);
    let results = results(&world.conversation);
    assert!(results[0].starts_with(failure), "{results:?}");
    assert!(!world.names().contains(&"tool.started"));
}

#[test]
fn a_bound_resource_is_passed_by_name() {
    let mut run = delegating();
    let source = ResourceSource::Value("https://ledger.example".into());
    run.resources = vec![BoundResource { name: "ledger".into(), kind: ResourceType::ApiEndpoint, source }];
    let (tool, mut arguments) = invoke("ledger-reader");
    arguments["resources"] = json!(["ledger"]);
    let mut world = World::new(run, vec![asks(&[(tool, arguments)])], ALL_WELL);
    world.skills = skills();
    world.play_until(|conversation| matches!(next(conversation), Step::AwaitChild(_)));
    assert_eq!(awaited(&world).resources, ["ledger"]);
}

/// What is left: 49 steps, 99 calls, 199,890 tokens, 1,800 s.
#[rstest]
#[case::as_wanted(json!({"steps": 3, "toolCalls": 4, "tokens": 5000, "duration": "1m"}), (3, 4, 5000, "60s"))]
#[case::at_most_what_is_left(json!({"steps": 500, "toolCalls": 500, "tokens": 900_000, "duration": "9h"}), (49, 99, 199_890, "1800s"))]
#[case::half_by_default(json!({"steps": 3}), (3, 50, 99_945, "900s"))]
fn the_limits_of_a_child_are_reserved_from_what_is_left(
    #[case] wanted: serde_json::Value,
    #[case] expected: (u32, u32, u64, &str),
) {
    let (steps, tool_calls, tokens, duration) = expected;
    let (tool, mut arguments) = invoke("billing");
    arguments["limits"] = wanted;
    let mut world = World::new(delegating(), vec![asks(&[(tool, arguments)])], ALL_WELL);
    world.skills = skills();
    world.play_until(|conversation| matches!(next(conversation), Step::AwaitChild(_)));
    let duration = Some(duration.parse().unwrap());
    let limits = Limits { steps: Some(steps), tool_calls: Some(tool_calls), tokens: Some(tokens), duration };
    assert_eq!(awaited(&world).limits, limits);
}

#[test]
fn the_budgets_of_children_end_the_job() {
    let spends = |request: &ChildRequest| {
        let tokens = request.limits.tokens.unwrap();
        ended(OutcomeCode::TokenLimit, Usage { input_tokens: tokens, ..Usage::default() })
    };
    let (tool, mut arguments) = invoke("billing");
    arguments["limits"] = json!({"tokens": 1_000_000});
    let world = played(delegating(), vec![asks(&[(tool, arguments)])], spends);
    assert_eq!(code(&world), OutcomeCode::TokenLimit);
}

#[test]
fn a_job_has_a_bounded_number_of_children() {
    let calls = vec![invoke("billing"); MAX_CHILDREN + 1];
    let world = played(delegating(), vec![asks(&calls)], |_| ended(OutcomeCode::Succeeded, Usage::default()));
    let results = results(&world.conversation);
    let last = results.last().unwrap();
    assert!(last.starts_with("Failed: This Job has invoked 32 Skills, which is the most."), "{last}");
    assert_eq!(world.names().iter().filter(|name| **name == "child.started").count(), MAX_CHILDREN);
}

#[test]
fn a_child_of_a_call_that_was_not_started_changes_nothing() {
    let mut world = World::new(delegating(), vec![asks(&[invoke("billing")])], ALL_WELL);
    world.skills = skills();
    world.play_until(|conversation| matches!(next(conversation), Step::InvokeSkill(_)));
    let call: CallId = world.conversation.calls()[0].id.clone();
    let limits = Limits { tokens: Some(100_000), ..Limits::default() };
    world.record(Event::ChildStarted { call, job: "x".into(), skill: "billing".into(), limits });
    assert_eq!(spent(&world), ChildrenUsage::default());
    assert!(matches!(next(&world.conversation), Step::InvokeSkill(_)));
}

/// The goal names the order.
#[rstest]
#[case::written_by_a_person(1, Verdict::Allow)]
#[case::written_by_the_model_of_the_parent(2, Verdict::Hold)]
fn the_goal_of_a_child_is_not_from_a_user(#[case] depth: u32, #[case] expected: Verdict) {
    let mut run = Run { depth, ..run() };
    let approvals = json!({"approvals": [{"toolId": "process_refund", "when": "!fromUser(order_id)"}]});
    run.skill.policy = serde_json::from_value(approvals).unwrap();
    let world = played(run, vec![asks(&[("process_refund", order())])], succeeds);
    assert_eq!(world.conversation.shared.calls.rulings().last[0].verdict, expected);
}
