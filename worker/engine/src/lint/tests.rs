use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

/// The Skill of seed 002, section 3.1, with the parts that a case replaces (RFC 7386).
fn with(changed: Value) -> SkillSpec {
    let mut skill = json!({
        "problem": {"statement": "Help customers track orders and process refunds", "goals": ["Reduce response time"]},
        "role": {"name": "Support Agent", "persona": "Friendly and empathetic customer support specialist"},
        "intents": {
            "supported": [{"id": "intent_refund", "entities": [{"name": "order_id", "type": "string", "required": true}]}],
            "outOfDomain": {"action": "redirect", "message": "I can only help with orders and refunds"},
        },
        "tools": [
            {
                "name": "process_refund",
                "inputs": [{"name": "order_id", "type": "string", "required": true}, {"name": "amount", "type": "number", "required": true}],
                "policy": {"allowed": "always", "requiresApproval": "conditional", "condition": "amount > 500"},
            },
            {"name": "verify_identity"},
            {"name": "check_eligibility"},
        ],
        "policy": {
            "guardrails": {
                "never": ["Never share customer payment information", "Never be dismissive to frustrated customers"],
                "always": ["Always verify customer identity before account access"],
            },
            "workflows": [{
                "name": "Refund Processing", "steps": ["verify_identity", "check_eligibility", "process_refund"], "required": true, "intents": ["intent_refund"],
            }],
            "approvals": [{"toolId": "process_refund", "when": "amount > 500", "action": "require_approval", "approver": "supervisor"}],
        },
        "outputContract": {"requiredFields": ["order_id", "status", "next_steps"]},
    });
    merge(&mut skill, changed);
    serde_json::from_value(skill).unwrap()
}

fn merge(into: &mut Value, changed: Value) {
    match (into, changed) {
        (Value::Object(into), Value::Object(changed)) => {
            for (name, value) in changed {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, changed) => *into = changed,
    }
}

fn never(rule: &str) -> Value {
    json!({"policy": {"guardrails": {"never": [rule], "always": []}}})
}

#[test]
fn the_skill_of_the_seed_is_as_it_should_be() {
    assert_eq!(skill(&with(json!({}))), []);
}

#[rstest]
#[case::persona(json!({"role": {"persona": "{{resources.docs}}"}}), "spec.role.persona")]
#[case::condition_of_a_tool(json!({"tools": [{"name": "a", "policy": {"allowed": "conditional", "condition": "amount >"}}], "policy": {"approvals": [], "workflows": []}}), "spec.tools[0].policy.condition")]
#[case::condition_of_an_approval(json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "amount > > 5"}]}}), "spec.policy.approvals[0].when")]
#[case::deep_condition(json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "(".repeat(500)}]}}), "spec.policy.approvals[0].when")]
#[case::schema(json!({"outputContract": {"schema": {"type": 17}}}), "spec.outputContract.schema")]
#[case::schema_elsewhere(json!({"outputContract": {"schema": {"$ref": "https://example.com/x.json"}}}), "spec.outputContract.schema")]
#[case::step_twice(json!({"policy": {"workflows": [{"name": "w", "steps": ["verify_identity", "verify_identity"]}]}}), "spec.policy.workflows[0].steps[1]")]
#[case::unknown_intent(json!({"policy": {"workflows": [{"name": "w", "steps": ["verify_identity"], "intents": ["intent_refnud"]}]}}), "spec.policy.workflows[0].intents[0]")]
#[case::tool_twice(json!({"tools": [{"name": "process_refund"}, {"name": "process_refund"}], "policy": {"approvals": [], "workflows": []}}), "spec.tools[1].name")]
#[case::resource_twice(json!({"resources": [{"name": "a", "type": "filesystem"}, {"name": "a", "type": "credential"}]}), "spec.resources[1].name")]
fn an_error_names_its_field(#[case] changed: Value, #[case] path: &str) {
    let findings = skill(&with(changed));
    let errors: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.path.as_str())
        .collect();
    assert_eq!(errors, [path], "{findings:?}");
}

#[rstest]
#[case::approval_of_an_unknown_tool(json!({"policy": {"approvals": [{"toolId": "proces_refund"}]}}), "spec.policy.approvals[0].toolId", Some("did you mean \"process_refund\"?"))]
#[case::allowed_unknown(json!({"policy": {"tools": {"allowed": ["verify_*", "send_email"]}}}), "spec.policy.tools.allowed[1]", None)]
#[case::blocked_unknown(json!({"policy": {"tools": {"blocked": ["process_refnd"]}}}), "spec.policy.tools.blocked[0]", Some("did you mean \"process_refund\"?"))]
#[case::allowed_and_blocked(json!({"policy": {"tools": {"allowed": ["process_refund"], "blocked": ["process_*"]}}}), "spec.policy.tools.allowed[0]", None)]
#[case::step_that_is_nearly_a_tool(json!({"policy": {"workflows": [{"name": "w", "steps": ["verify_identty"]}]}}), "spec.policy.workflows[0].steps[0]", Some("did you mean \"verify_identity\"?"))]
#[case::threshold_of_an_unknown_field(
    never("amonut > 500"),
    "spec.policy.guardrails.never[0]",
    Some("did you mean \"amount\"?")
)]
#[case::a_number_with_a_comma(never("amount > 1,000"), "spec.policy.guardrails.never[0]", None)]
#[case::a_number_with_a_letter(never("amount > 10k"), "spec.policy.guardrails.never[0]", None)]
#[case::never_use_an_unknown_tool(
    never("Never use process_refnd"),
    "spec.policy.guardrails.never[0]",
    Some("did you mean the tool \"process_refund\"?")
)]
#[case::without_approval_in_general(
    never("Never process refunds over $500 without supervisor approval"),
    "spec.policy.guardrails.never[0]",
    Some("to have calls wait for a person, say so in spec.policy.approvals: toolId, and when they do")
)]
#[case::without_approval_of_a_tool(
    never("Never call process_refund without approval"),
    "spec.policy.guardrails.never[0]",
    Some("say when in spec.policy.approvals[].when, such as \"amount > 500\"")
)]
#[case::an_exception_to_a_comparison(
    never("amount > 500 unless it is urgent"),
    "spec.policy.guardrails.never[0]",
    Some("to have calls wait for a person, say so in spec.policy.approvals: toolId, and when they do")
)]
fn a_warning_names_its_field_and_what_may_be_meant(
    #[case] changed: Value,
    #[case] path: &str,
    #[case] hint: Option<&str>,
) {
    let findings = skill(&with(changed));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].severity, findings[0].path.as_str()), (Severity::Warning, path));
    assert_eq!(findings[0].hint.as_deref(), hint);
}

#[rstest]
#[case::never_use_a_tool("Never use process_refund")]
#[case::a_threshold("amount > 500")]
#[case::a_threshold_with_approval("amount > 500.50 needs approval")]
#[case::approval("process_refund requires approval")]
#[case::a_rule_for_models("Never be dismissive")]
#[case::without_is_only_a_word("Never leave without a greeting")]
fn what_is_enforced_or_is_meant_for_models_is_no_finding(#[case] rule: &str) {
    assert_eq!(skill(&with(never(rule))), []);
}

#[test]
fn tools_that_only_the_server_knows_are_not_doubted_where_none_is_declared() {
    let changed = json!({
        "tools": null, "policy": {"tools": {"allowed": ["send_*"], "blocked": ["delete_customer"]}, "approvals": [{"toolId": "send_email"}], "workflows": null},
    });
    let mut spec = json!({"problem": {"statement": "Help"}});
    merge(&mut spec, changed);
    spec.as_object_mut().unwrap().remove("tools");
    spec["policy"].as_object_mut().unwrap().remove("workflows");
    assert_eq!(skill(&serde_json::from_value(spec).unwrap()), []);
}

#[test]
fn rules_beyond_the_prompt_s_budget_are_named() {
    let rules: Vec<String> = (0..12).map(|n| format!("Be kind {n}")).collect();
    let findings = skill(&with(json!({"policy": {"guardrails": {"never": [], "always": rules}}})));
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["spec.policy.guardrails.always[10]", "spec.policy.guardrails.always[11]"]);
}

#[test]
fn everything_is_told_at_once_errors_first() {
    let findings = skill(&with(json!({
        "role": {"persona": "{{goal}} {{#if}}"},
        "policy": {"guardrails": {"never": ["amount > 10k"]}, "approvals": [{"toolId": "proces_refund", "when": "amount >"}]},
        "outputContract": {"schema": {"type": 17}},
    })));
    let severities: Vec<Severity> = findings.iter().map(|finding| finding.severity).collect();
    assert!(severities.is_sorted(), "{findings:?}");
    assert_eq!(severities.iter().filter(|severity| **severity == Severity::Error).count(), 4, "{findings:?}");
    assert_eq!(severities.len(), 6, "{findings:?}");
}

proptest! {
    #[test]
    fn no_rule_and_no_condition_panics(rule in ".{0,60}", condition in ".{0,60}", persona in ".{0,60}", name in ".{0,40}") {
        let _ = skill(&with(json!({
            "role": {"persona": persona},
            "policy": {
                "guardrails": {"never": [rule], "always": [rule]}, "tools": {"allowed": [name], "blocked": [name]},
                "approvals": [{"toolId": name, "when": condition}], "workflows": [{"name": name, "steps": [name, rule]}],
            },
        })));
    }
}
