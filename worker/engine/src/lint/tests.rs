mod agreement;
mod results;
mod scripts;
mod sentences;
mod with_tools;

use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

/// Returns the findings about a Skill whose server lists these tools, each with the schema of its arguments.
fn skill<'t>(spec: &SkillSpec, listed: impl IntoIterator<Item = (&'t str, &'t Value)>) -> Vec<Finding> {
    super::skill(spec, listed.into_iter().map(without_output))
}

/// Returns the errors in the rules of a Skill whose server lists these tools, each with the schema of its arguments.
fn rule_errors<'t>(spec: &SkillSpec, listed: impl IntoIterator<Item = (&'t str, &'t Value)>) -> Vec<Finding> {
    super::rule_errors(spec, listed.into_iter().map(without_output))
}

fn without_output<'t>((name, arguments): (&'t str, &'t Value)) -> ServerTool<'t> {
    ServerTool { name, arguments, output: None }
}

/// Returns the findings about a Skill whose server is not known.
fn declared_only(spec: &SkillSpec) -> Vec<Finding> {
    skill(spec, [])
}

/// Returns a Skill without findings, merged with the parts that a case replaces. Objects are merged, other values replaced.
fn with(changed: Value) -> SkillSpec {
    let mut skill = json!({
        "problem": {"statement": "Help customers track orders and process refunds", "goals": ["Reduce response time"]},
        "role": {"name": "Support Agent", "persona": "Friendly and empathetic customer support specialist"},
        "intents": {
            "supported": [{"id": "intent_refund", "entities": [{"name": "order_id", "type": "string", "required": true}]}],
            "outOfDomain": {"action": "redirect", "message": "I can only help with orders and refunds"},
        },
        "mcpServer": {"service": {"name": "orders", "port": 8080}},
        "tools": [
            {
                "name": "process_refund",
                "inputs": [{"name": "order_id", "type": "string", "required": true}, {"name": "amount", "type": "number", "required": true}],
                "policy": {"allowed": "always", "requiresApproval": "conditional", "condition": "amount > 500 || amount < 0"},
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
            "approvals": [{"toolId": "process_refund", "when": "amount > 500 || amount < 0", "action": "require_approval", "approver": "supervisor"}],
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

/// Returns a feature with this extension.
fn feature(ext: &Value) -> Value {
    json!({"name": "a", "testScenario": "Given x", "expectedResult": "y", "ext": ext})
}

fn never(rule: &str) -> Value {
    json!({"policy": {"guardrails": {"never": [rule], "always": []}}})
}

fn always(rule: &str) -> Value {
    json!({"policy": {"guardrails": {"never": [], "always": [rule]}}})
}

#[test]
fn a_correct_skill_has_no_findings() {
    assert_eq!(declared_only(&with(json!({}))), []);
    let with_texts = json!({
        "docs": format!("# A\n{}# B\n", "x\n".repeat(49)), "features": [feature(&json!({"skillMdRef": "#b"}))],
        "memory": {"notes": {"progress": "x"}, "scope": ["progress"]},
    });
    assert_eq!(declared_only(&with(with_texts)), []);
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
#[case::feature_twice(json!({"features": [feature(&json!(null)), feature(&json!(null))]}), "spec.features[1].name")]
#[case::feature_without_section(json!({"docs": "# Refunds", "features": [feature(&json!({"skillMdRef": "#refnuds"}))]}), "spec.features[0].ext.skillMdRef")]
#[case::feature_without_script(json!({"features": [feature(&json!({"script": "check.sh"}))]}), "spec.features[0].ext.script")]
#[case::feature_without_subskill(json!({"skills": ["find"], "features": [feature(&json!({"subskill": "look"}))]}), "spec.features[0].ext.subskill")]
#[case::validation_without_features(json!({"features": [], "engine": {"validation": {"onChange": true}}}), "spec.engine.validation.onChange")]
#[case::texts_that_are_too_large(json!({"docs": "x".repeat(65_537)}), "spec.docs")]
#[case::resource_twice(json!({"resources": [{"name": "a", "type": "filesystem"}, {"name": "a", "type": "credential"}]}), "spec.resources[1].name")]
fn an_error_names_its_field(#[case] changed: Value, #[case] path: &str) {
    let findings = declared_only(&with(changed));
    let errors: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.path.as_str())
        .collect();
    assert_eq!(errors, [path], "{findings:?}");
}

#[rstest]
#[case::criteria_without_room(json!({"acceptanceCriteria": vec!["x".repeat(512); 32]}), "spec.acceptanceCriteria", Some("shorten it"))]
#[case::features_without_room(json!({"features": vec![json!({"name": "a", "testScenario": "x".repeat(5000), "expectedResult": "y"})]}), "spec.features", Some("shorten it"))]
#[case::a_long_section(json!({"docs": format!("# A\n{}# B\n", "x\n".repeat(50))}), "spec.docs", Some("divide it into sections of at most 50 lines"))]
#[case::notes_without_bank(json!({"memory": {"bank": "off", "notes": {"progress": "x"}}}), "spec.memory.notes", Some("set bank to read or write"))]
#[case::a_scope_without_bank(json!({"memory": {"bank": "off", "scope": []}}), "spec.memory.scope", Some("set bank to read or write"))]
#[case::a_schema_without_room(json!({"outputContract": {"schema": {"title": "x".repeat(5000)}}}), "spec.outputContract.schema", Some("shorten it"))]
#[case::approval_of_an_unknown_tool(json!({"policy": {"approvals": [{"toolId": "proces_refund"}]}}), "spec.policy.approvals[0].toolId", Some("did you mean \"process_refund\"?"))]
#[case::allowed_unknown(json!({"policy": {"tools": {"allowed": ["verify_*", "send_email"]}, "workflows": []}}), "spec.policy.tools.allowed[1]", None)]
#[case::blocked_unknown(json!({"policy": {"tools": {"blocked": ["process_refnd"]}}}), "spec.policy.tools.blocked[0]", Some("did you mean \"process_refund\"?"))]
#[case::allowed_and_blocked(json!({"policy": {"tools": {"allowed": ["process_refund"], "blocked": ["process_*"]}, "workflows": []}}), "spec.policy.tools.allowed[0]", None)]
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
    Some("did you mean \"process_refund\"?")
)]
#[case::without_approval_in_general(
    never("Never process refunds over $500 without supervisor approval"),
    "spec.policy.guardrails.never[0]",
    Some("to hold calls for approval, write toolId and when in spec.policy.approvals")
)]
#[case::without_approval_of_a_tool(
    never("Never call process_refund without approval"),
    "spec.policy.guardrails.never[0]",
    Some("write the exception in spec.policy.approvals[].when, such as \"amount > 500\"")
)]
#[case::an_exception_to_a_comparison(
    never("amount > 500 unless it is urgent"),
    "spec.policy.guardrails.never[0]",
    Some("to hold calls for approval, write toolId and when in spec.policy.approvals")
)]
fn a_warning_names_its_field_and_suggests_a_name(
    #[case] changed: Value,
    #[case] path: &str,
    #[case] hint: Option<&str>,
) {
    let findings = declared_only(&with(changed));
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
#[case::an_amount_in_prose("Never process refunds over $500")]
#[case::an_approver_in_prose("Large refunds require supervisor approval")]
#[case::an_arrow("Never skip the steps open -> 2 -> closed")]
#[case::an_address("Never link to https://example.com/?page=5")]
#[case::a_word_compared("Never let amount > limit")]
#[case::a_tool_s_name_that_is_a_word("Never search for what customers did elsewhere")]
#[case::another_verb("Never call process_refund")]
#[case::do_not("Do not call `process_refund()`.")]
#[case::a_number_with_a_unit("Never write a line over 80 characters")]
#[case::approval_in_prose("Thank customers for their approval")]
#[case::do_as_we_write("Always write the names of files in snake_case")]
#[case::an_argument("Never show the order_id to others")]
fn enforced_rules_and_plain_prose_are_no_findings(#[case] rule: &str) {
    let mut skill_with = with(never(rule));
    skill_with.tools.push(serde_json::from_value(json!({"name": "search"})).unwrap());
    // One of the rules denies a tool, which then cannot be a step of a workflow.
    skill_with.policy.as_mut().unwrap().workflows.clear();
    assert_eq!(declared_only(&skill_with), []);
}

/// Rules that only read as if they were enforced, and the enforced form of each.
#[rstest]
#[case::an_approver_in_between(
    "process_refund requires supervisor approval",
    "names the tool process_refund",
    "\"process_refund requires approval\""
)]
#[case::never_before_an_approval(
    "Never process_refund requires approval",
    "names the tool process_refund",
    "\"process_refund requires approval\""
)]
#[case::more_than_the_name(
    "Never use process_refund on Fridays",
    "names the tool process_refund",
    "\"Never use process_refund\""
)]
#[case::a_misspelt_name(
    "Never process_refunds twice",
    "seems to name a tool (\"process_refunds\")",
    "\"process_refund\""
)]
#[case::an_undeclared_name_after_a_verb(
    "Never call wipe_disk twice",
    "seems to name a tool (\"wipe_disk\")",
    "\"Never use <tool>\""
)]
#[case::a_prefix("Never call process_* on Fridays", "names the tool process_*", "\"Never use process_*\"")]
#[case::in_words("Never refund an amount over 500", "compares with a number", "\"Never amount > 500\"")]
#[case::an_expression(
    "!fromUser(order_id)",
    "is a CEL expression",
    "{toolId: <tool>, when: \"!fromUser(order_id)\", action: deny}"
)]
#[case::do_not(
    "Do not call `process_refund()` twice.",
    "names the tool process_refund",
    "\"Never use process_refund\""
)]
#[case::two_tools(
    "Never use process_refund or verify_identity",
    "names the tools process_refund, verify_identity",
    "\"Never use process_refund\" and \"Never use verify_identity\""
)]
#[case::an_order("Never call process_refund before verify_identity", "names the tools", "spec.policy.workflows")]
#[case::always_a_tool("Always call verify_identity", "names the tool verify_identity", "spec.policy.workflows")]
#[case::a_tool_s_name_that_is_a_word("Never use search on Fridays", "names the tool search", "\"Never use search\"")]
#[case::a_tool_s_name_that_is_a_word_alone("Never search", "names the tool search", "\"Never use search\"")]
#[case::a_limit_in_words(
    "amount must not exceed 500",
    "compares with a number",
    "\"Always amount <= 500\" under always"
)]
#[case::approved(
    "process_refund must be approved",
    "names the tool process_refund",
    "\"process_refund requires approval\""
)]
#[case::two_words_for_a_field("Never refund amount > 500", "compares with a number", "\"Never amount > 500\"")]
#[case::in_a_sentence("If amount >500, say so", "compares with a number", "\"Never amount > 500\"")]
#[case::a_sign_of_mathematics("Never refund amount ≥ 500", "compares with a number", "\"Never amount >= 500\"")]
#[case::turned_round("Never where 500 < amount", "compares with a number", "\"Never amount > 500\"")]
#[case::always("Always keep amount <= 500", "compares with a number", "\"Always amount <= 500\" under always")]
#[case::equal(
    "Never pay amount == 500",
    "compares with a number",
    "\"amount != 500\" in spec.tools[].policy.condition"
)]
#[case::unequal(
    "Always keep amount != 0",
    "compares with a number",
    "\"amount != 0\" in spec.tools[].policy.condition"
)]
#[case::no_plain_number(
    "Never refund amount > 10k",
    "compares with a number",
    "a plain number: \"Never amount > 500\""
)]
#[case::no_field("Never give away >50 percent", "compares with a number", "a plain number: \"Never amount > 500\"")]
#[case::a_comparison_with_approval(
    "Each amount > 500 requires approval",
    "compares with a number",
    "\"amount > 500 requires approval\""
)]
#[case::a_comparison_and_a_tool(
    "Never process_refund amount > 500",
    "names the tool",
    "{toolId: process_refund, when: \"amount > 500\", action: deny} in spec.policy.approvals"
)]
#[case::approval_in_general("All refunds require approval", "asks for approval", "requires approval\"")]
fn a_rule_that_only_reads_as_enforced_is_reported_with_the_enforced_form(
    #[case] rule: &str,
    #[case] why: &str,
    #[case] form: &str,
) {
    let mut skill_with = with(never(rule));
    skill_with.tools.push(serde_json::from_value(json!({"name": "search"})).unwrap());
    let findings = declared_only(&skill_with);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Warning, "spec.policy.guardrails.never[0]"));
    assert!(finding.message.starts_with(&format!("{rule:?} {why}")), "{finding:?}");
    assert!(finding.message.ends_with("but is not enforced: it is only text in the prompt"), "{finding:?}");
    assert!(finding.hint.as_ref().unwrap().contains(form), "{finding:?}");
}

#[test]
fn an_exception_that_names_a_tool_is_reported() {
    let findings = declared_only(&with(never("Never use process_refund unless asked")));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].message.ends_with("it is only text in the prompt"), "{findings:?}");
}

#[test]
fn a_long_rule_leaves_room_for_the_message() {
    let findings = declared_only(&with(never(&format!("Never call process_refund {}", "again ".repeat(80)))));
    assert!(findings.iter().any(|finding| finding.message.ends_with("only text in the prompt")), "{findings:?}");
}

#[rstest]
#[case::number("amount < 5", None)]
#[case::text(
    "name > 5",
    Some("\"name > 5\" compares \"name\" with a number, and in a it is a string: every call of a is denied")
)]
#[case::text_with_approval(
    "name > 5 needs approval",
    Some(
        "\"name > 5 needs approval\" compares \"name\" with a number, and in a it is a string: every call of a waits for approval"
    )
)]
fn a_threshold_on_an_input_that_is_not_a_number_is_reported(#[case] rule: &str, #[case] message: Option<&str>) {
    let inputs = json!([{"name": "amount", "type": "number"}, {"name": "name", "type": "string"}]);
    let mut changed = never(rule);
    merge(
        &mut changed,
        json!({"tools": [{"name": "a", "inputs": inputs}], "policy": {"approvals": [], "workflows": []}}),
    );
    let findings = declared_only(&with(changed));
    assert_eq!(findings.first().map(|finding| finding.message.as_str()), message);
    assert_eq!(findings.len(), usize::from(message.is_some()), "{findings:?}");
}

#[rstest]
#[case::words_before_a_tool(json!(["The customer is calm", "process_refund"]), true, true)]
#[case::words_after_the_tools(json!(["process_refund", "Say goodbye"]), true, false)]
#[case::a_tool(json!(["verify_identity", "process_refund"]), true, false)]
#[case::not_required(json!(["The customer is calm", "process_refund"]), false, false)]
fn a_required_step_in_words_does_not_protect_a_tool(
    #[case] steps: Value,
    #[case] required: bool,
    #[case] is_reported: bool,
) {
    let workflows = json!([{"name": "w", "steps": steps, "required": required}]);
    let findings = declared_only(&with(json!({"policy": {"workflows": workflows}})));
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, Vec::from_iter(is_reported.then_some("spec.policy.workflows[0].steps[0]")), "{findings:?}");
}

#[rstest]
#[case::the_same_words(json!(["Never lie", "Never  lie."]), json!([]), "spec.policy.guardrails.never[1]")]
#[case::the_same_range(json!(["amount > 500", "Never amount > 500"]), json!([]), "spec.policy.guardrails.never[1]")]
#[case::in_the_other_list(json!(["verify_identity needs approval"]), json!(["verify_identity requires approval"]), "spec.policy.guardrails.always[0]")]
#[case::other_findings_of_a_duplicate_are_not_repeated(json!(["amount > 10k", "amount > 10k"]), json!([]), "spec.policy.guardrails.never[1]")]
fn a_rule_with_the_same_meaning_as_another_is_reported(
    #[case] never: Value,
    #[case] always: Value,
    #[case] path: &str,
) {
    let findings = declared_only(&with(json!({"policy": {"guardrails": {"never": never, "always": always}}})));
    let twice: Vec<&Finding> =
        findings.iter().filter(|finding| finding.message.contains("has the same meaning")).collect();
    assert_eq!(twice.len(), 1, "{findings:?}");
    assert!(twice[0].message.ends_with("has the same meaning as spec.policy.guardrails.never[0]"), "{findings:?}");
    assert_eq!((twice[0].severity, twice[0].path.as_str()), (Severity::Warning, path));
    assert_eq!(findings.iter().filter(|finding| finding.path == path).count(), 1, "{findings:?}");
}

#[test]
fn a_range_that_is_forbidden_and_required_is_no_duplicate() {
    let rules = json!({"never": ["amount > 500"], "always": ["amount > 500"]});
    assert_eq!(declared_only(&with(json!({"policy": {"guardrails": rules}}))), []);
}

#[rstest]
#[case::by_a_guardrail(
    json!({"policy": {"guardrails": {"never": ["Never use check_eligibility"]}}}),
    "spec.policy.guardrails.never[0] denies every call of it: \"Never use check_eligibility\""
)]
#[case::by_a_block(json!({"policy": {"tools": {"blocked": ["check_*"]}}}), "the Skill's policy.tools.blocked names \"check_*\"")]
#[case::by_the_allowed_list(
    json!({"policy": {"tools": {"allowed": ["verify_identity", "process_refund"]}}}),
    "the Skill's policy.tools.allowed does not name \"check_eligibility\""
)]
#[case::by_its_own_policy(
    json!({"tools": [{"name": "verify_identity"}, {"name": "check_eligibility", "policy": {"allowed": "never"}}, {"name": "process_refund"}]}),
    "the policy of check_eligibility in spec.tools allows no call of it"
)]
fn a_required_workflow_with_a_denied_step_is_an_error_that_names_both(#[case] changed: Value, #[case] why: &str) {
    let findings = declared_only(&with(changed.clone()));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Error, "spec.policy.workflows[0].steps[1]"));
    assert_eq!(
        finding.message,
        format!(
            "\"check_eligibility\" and the steps after it can never be done, but the workflow \"Refund Processing\" is required: {why}"
        )
    );
    let mut optional = with(changed);
    optional.policy.as_mut().unwrap().workflows[0].required = Some(false);
    assert_eq!(declared_only(&optional), []);
}

/// Conditions of `process_refund`, which declares `order_id` as a string and `amount` as a number.
#[rstest]
#[case::no_bool(
    "amount + 1",
    Severity::Error,
    "the condition never has a result: a number is neither true nor false",
    "amount is a number"
)]
#[case::no_bool_whatever_the_inputs(
    "size('x')",
    Severity::Error,
    "the condition never has a result: a number is neither true nor false",
    "a condition must be true or false and compare values of one kind, such as \"amount > 500\""
)]
#[case::number_against_text(
    "amount > 'x'",
    Severity::Error,
    "the condition never has a result: a number > a string cannot be compared",
    "amount is a number"
)]
#[case::an_equality_of_two_kinds(
    "amount == '500' || order_id == 'A-17'",
    Severity::Error,
    "a part of the condition is constant: a number == a string is always false",
    "amount is a number, order_id is a string"
)]
fn a_condition_that_compares_the_wrong_kinds_is_reported(
    #[case] condition: &str,
    #[case] severity: Severity,
    #[case] message: &str,
    #[case] hint: &str,
) {
    let mut of_a_tool = with(json!({}));
    let policy = json!({"allowed": "conditional", "condition": condition});
    of_a_tool.tools[0].policy = serde_json::from_value(policy).unwrap();
    let of_an_approval = with(json!({"policy": {"approvals": [{"toolId": "process_refund", "when": condition}]}}));
    for (skill_with, path) in
        [(of_a_tool, "spec.tools[0].policy.condition"), (of_an_approval, "spec.policy.approvals[0].when")]
    {
        let finding = Finding { path: path.into(), severity, message: message.into(), hint: Some(hint.into()) };
        assert_eq!(declared_only(&skill_with), [finding]);
    }
}

#[rstest]
#[case::the_tool_declares_nothing("amount > 'x'", true)]
#[case::no_bool_by_its_syntax("amount + 1", false)]
#[case::literals("size(amount) > 'a'", false)]
fn a_condition_on_inputs_that_are_not_declared_is_judged_by_its_syntax(#[case] condition: &str, #[case] good: bool) {
    let approvals = json!([{"toolId": "verify_identity", "when": condition}]);
    let findings = declared_only(&with(json!({"policy": {"approvals": approvals}})));
    assert_eq!(findings.is_empty(), good, "{findings:?}");
}

#[test]
fn unknown_tools_are_no_finding_if_the_skill_declares_no_tools() {
    let changed = json!({
        "tools": null, "policy": {"tools": {"allowed": ["send_*"], "blocked": ["delete_customer"]}, "approvals": [{"toolId": "send_email"}], "workflows": null},
    });
    let mut spec =
        json!({"problem": {"statement": "Help"}, "mcpServer": {"service": {"name": "orders", "port": 8080}}});
    merge(&mut spec, changed);
    spec.as_object_mut().unwrap().remove("tools");
    spec["policy"].as_object_mut().unwrap().remove("workflows");
    assert_eq!(declared_only(&serde_json::from_value(spec).unwrap()), []);
}

#[test]
fn rules_for_which_the_prompt_has_no_room_are_reported() {
    let rules: Vec<String> = (0..12).map(|n| format!("Be kind {n}")).collect();
    let findings = declared_only(&with(json!({"policy": {"guardrails": {"never": [], "always": rules}}})));
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["spec.policy.guardrails.always[10]", "spec.policy.guardrails.always[11]"]);
}

#[test]
fn all_findings_are_reported_at_once_errors_first() {
    let findings = declared_only(&with(json!({
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
        let _ = declared_only(&with(json!({
            "role": {"persona": persona},
            "policy": {
                "guardrails": {"never": [rule], "always": [rule]}, "tools": {"allowed": [name], "blocked": [name]},
                "approvals": [{"toolId": name, "when": condition}], "workflows": [{"name": name, "steps": [name, rule]}],
            },
        })));
    }
}

#[rstest]
#[case::without_resources(json!({"context": {"projectStructure": true}}), true)]
#[case::of_a_file_system(
    json!({"context": {"recentChanges": true}, "resources": [{"name": "code", "type": "filesystem"}]}),
    false,
)]
#[case::of_an_endpoint(
    json!({"context": {"recentChanges": true}, "resources": [{"name": "ci", "type": "api_endpoint"}]}),
    true,
)]
#[case::not_wanted(json!({"context": {"projectStructure": false}}), false)]
fn a_context_without_a_file_system_is_a_warning(#[case] changed: Value, #[case] is_reported: bool) {
    let findings = declared_only(&with(changed));
    assert_eq!(findings.iter().any(|finding| finding.path == "spec.context"), is_reported, "{findings:?}");
}

#[rstest]
#[case::a_header_of_the_request(json!({"auth": {"credential": "key", "header": "Content-Type"}}), Some("spec.resources[0].auth.header"))]
#[case::a_step_up(json!({"rules": [{"methods": ["GET"], "paths": ["/a", "/a/../b"]}]}), Some("spec.resources[0].rules[0].paths[1]"))]
#[case::an_empty_segment(json!({"rules": [{"methods": ["GET"], "paths": ["/a//b"]}]}), Some("spec.resources[0].rules[0].paths[0]"))]
#[case::a_slash_at_the_end(json!({"rules": [{"methods": ["GET"], "paths": ["/", "/a/", "/**"]}]}), None)]
#[case::a_header_of_its_own(json!({"auth": {"credential": "key", "header": "X-Key"}}), None)]
fn headers_and_paths_that_no_call_can_have_are_reported(#[case] declared: Value, #[case] path: Option<&str>) {
    let mut endpoint = json!({"name": "shop", "type": "api_endpoint"});
    endpoint.as_object_mut().unwrap().extend(declared.as_object().unwrap().clone());
    let findings = declared_only(&with(json!({"resources": [endpoint, {"name": "key", "type": "credential"}]})));
    let paths = findings.iter().map(|finding| finding.path.as_str());
    // Without `auth`, the credential reaches nothing.
    let paths: Vec<&str> = paths.filter(|path| *path != "spec.resources[1]").collect();
    assert_eq!(paths, path.into_iter().collect::<Vec<_>>(), "{findings:?}");
}

#[rstest]
#[case::declared(json!({"tools": [{"name": "track"}, {"name": "read_file"}]}), Some("track"))]
#[case::allowed_and_held(
    json!({"policy": {"tools": {"allowed": ["send_*", "track"]}, "approvals": [{"toolId": "refund"}, {"toolId": "track"}]}}),
    Some("refund, track, send_*")
)]
#[case::core_tools(json!({"tools": [{"name": "read_file"}], "policy": {"tools": {"allowed": ["*"]}}}), None)]
#[case::with_a_server(json!({"tools": [{"name": "track"}], "mcpServer": {"service": {"name": "orders", "port": 8080}}}), None)]
fn tools_without_a_server_are_reported(#[case] changed: Value, #[case] tools: Option<&str>) {
    let mut spec = json!({"problem": {"statement": "Help"}});
    merge(&mut spec, changed);
    let findings = without_server(&serde_json::from_value(spec).unwrap());
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    let expected = tools.map(|tools| format!("the Skill has no MCP server, so it runs without its tools: {tools}"));
    assert_eq!(messages, Vec::from_iter(expected.as_deref()), "{findings:?}");
}

#[test]
fn a_job_without_a_server_does_not_begin_with_a_misspelt_core_tool() {
    let with_server = json!({"service": {"name": "orders", "port": 8080}});
    let errors = |server: &Value| {
        let policy = json!({"approvals": [{"toolId": "http_gett"}]});
        let resources = json!([{"name": "shop", "type": "api_endpoint"}]);
        let spec =
            json!({"problem": {"statement": "Help"}, "policy": policy, "mcpServer": server, "resources": resources});
        let spec: SkillSpec = serde_json::from_value(spec).unwrap();
        let [lint, job] = [without_server(&spec), rule_errors(&spec, [])];
        [lint, job].map(|found| found.into_iter().filter(|finding| finding.severity == Severity::Error).collect())
    };
    let [lint, job]: [Vec<Finding>; 2] = errors(&Value::Null);
    let [error] = job.as_slice() else { panic!("{job:?}") };
    assert_eq!(error.path, "spec.policy.approvals[0].toolId");
    assert!(error.message.contains("did you mean \"http_get\""), "{error}");
    assert_eq!(lint, job);
    assert_eq!(errors(&with_server), [Vec::<Finding>::new(), Vec::new()]);
}

#[test]
fn the_server_of_a_job_gets_the_secrets_that_it_names_and_its_faults_are_errors() {
    let server = |resource: &str| {
        let bindings = json!([{"resource": resource, "env": "DATABASE_URL"}]);
        json!({"scope": "Job", "container": {"image": "db:1", "bindings": bindings}, "service": null})
    };
    let found = |resource: &str| {
        declared_only(&with(json!({
            "resources": [{"name": "ledger", "type": "connection_string"}, {"name": "code", "type": "filesystem"}],
            "mcpServer": server(resource),
        })))
    };
    assert_eq!(found("ledger"), []);
    let paths: Vec<String> = found("code").into_iter().map(|finding| finding.path).collect();
    assert_eq!(paths, ["spec.mcpServer.container.bindings[0].resource", "spec.resources[0]"]);
}

#[rstest]
#[case::a_connection_string(json!([{"name": "ledger", "type": "connection_string"}]), Some("only an MCP server of scope Job gets a connection_string"))]
#[case::an_unused_credential(
    json!([{"name": "key", "type": "credential"}, {"name": "shop", "type": "api_endpoint"}]),
    Some("no api_endpoint uses it")
)]
#[case::a_used_credential(
    json!([{"name": "key", "type": "credential"}, {"name": "shop", "type": "api_endpoint", "auth": {"credential": "key"}}]),
    None
)]
fn secrets_that_reach_no_tool_are_reported(#[case] resources: Value, #[case] why: Option<&str>) {
    let findings = declared_only(&with(json!({"resources": resources})));
    assert_eq!(findings.len(), usize::from(why.is_some()), "{findings:?}");
    for Finding { path, message, hint, .. } in findings {
        assert_eq!(
            (path.as_str(), message),
            ("spec.resources[0]", format!("reaches nothing, because {}", why.unwrap()))
        );
        assert!(hint.unwrap().contains("spec.mcpServer.container.env"));
    }
}
