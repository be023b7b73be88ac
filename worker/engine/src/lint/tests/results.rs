//! The lint of what conditions read from results.

use super::*;

/// Returns the findings about a Skill that pays rents. Its server lists schemas of results.
fn findings(policy: &Value, tools: &Value) -> Vec<Finding> {
    let arguments = json!({"type": "object", "properties": {"iban": {"type": "string"}, "amount": {"type": "number", "minimum": 0}}});
    let rent = json!({"type": "object", "properties": {
        "amount": {"type": "number"}, "state": {"type": "string", "enum": ["open", "paid"]},
    }});
    let mut tenant = rent.clone();
    tenant["additionalProperties"] = json!(true);
    let payee = json!({"type": "object", "properties": {"iban": {"type": "string"}}});
    let payees =
        json!({"type": "object", "properties": {"result": {"type": "array", "items": payee}}, "required": ["result"]});
    let listed = [
        ("send_money", None),
        ("get_rent", Some(&rent)),
        ("get_tenant", Some(&tenant)),
        ("list_payees", Some(&payees)),
    ];
    let spec = json!({
        "problem": {"statement": "Pay rents"}, "policy": policy, "tools": tools,
        "mcpServer": {"service": {"name": "rents", "port": 8080}},
    });
    let listed = listed.map(|(name, output)| ServerTool { name, arguments: &arguments, output });
    crate::lint::skill(&serde_json::from_value(spec).unwrap(), listed)
}

fn approval(when: &str) -> Value {
    json!({"approvals": [{"toolId": "send_money", "when": when}]})
}

fn expecting(step: &str, condition: &str) -> Value {
    json!({"workflows": [{
        "name": "w", "required": true, "steps": ["get_rent", "send_money"], "expect": [{"step": step, "condition": condition}],
    }]})
}

const REMEDY: &str = "name one of amount, state; if the schema accepts other fields, declare the field in `output` of the tool in spec.tools";

#[rstest]
#[case::a_misspelt_field(
    approval("!results('get_rent').exists(r, has(r.amuont) && r.amuont == amount)"),
    "no output schema names the field \"results('get_rent')[].amuont\"",
    Some("did you mean \"amount\"?")
)]
#[case::of_several_tools(
    approval("!results('get_*').exists(r, has(r.amuont) && r.amuont == amount)"),
    "no output schema names the field \"results('get_*')[].amuont\"",
    Some("did you mean \"amount\"?")
)]
#[case::another_field(
    approval("!results('get_rent').exists(r, has(r.overdue) && r.overdue)"),
    "no output schema names the field \"results('get_rent')[].overdue\"",
    Some(REMEDY)
)]
#[case::a_field_that_only_the_server_accepts(
    approval("!results('get_tenant').exists(r, has(r.overdue) && r.overdue)"),
    "no output schema names the field \"results('get_tenant')[].overdue\"",
    Some(REMEDY)
)]
#[case::a_field_of_an_item(
    approval("!results('list_payees').exists(all, all.exists(p, has(p.ibn) && p.ibn == iban))"),
    "no output schema names the field \"results('list_payees')[][].ibn\"",
    Some("did you mean \"iban\"?")
)]
#[case::of_the_result(
    expecting("get_rent", "!has(result.amuont) || result.amuont > 0"),
    "no output schema names the field \"result.amuont\"",
    Some("did you mean \"amount\"?")
)]
#[case::of_an_earlier_step(
    expecting("send_money", "amount == steps.get_rent.result.amuont"),
    "no output schema names the field \"steps.get_rent.result.amuont\"",
    Some("did you mean \"amount\"?")
)]
#[case::a_text_that_the_schema_does_not_list(
    approval("!results('get_rent').exists(r, r.state == 'opne')"),
    "the comparison can never be true: results('get_rent')[].state is never \"opne\", only \"open\", \"paid\"",
    Some("write \"open\"")
)]
#[case::another_type(
    approval("!results('get_rent').exists(r, r.amount == '5')"),
    "a part of the condition is constant: a number == a string is always false",
    Some("a condition must be true or false and compare values of one kind, such as \"amount > 500\"")
)]
fn a_condition_that_does_not_fit_the_results_is_an_error(
    #[case] policy: Value,
    #[case] message: &str,
    #[case] hint: Option<&str>,
) {
    let found = findings(&policy, &json!([]));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.message.as_str()), (Severity::Error, message));
    assert_eq!(finding.hint.as_deref(), hint);
}

#[rstest]
#[case::a_field(approval("!results('get_rent').exists(r, r.amount == amount && r.state == 'open')"), json!([]))]
#[case::a_field_of_an_item(approval("!results('list_payees').exists(all, all.exists(p, p.iban == iban))"), json!([]))]
#[case::an_only_item(approval("!results('list_payees').exists(p, p.iban == iban)"), json!([]))]
#[case::a_tool_without_a_schema(approval("!results('send_money').exists(r, has(r.amuont))"), json!([]))]
#[case::a_declared_field(
    approval("!results('get_tenant').exists(r, has(r.overdue) && r.overdue)"),
    json!([{"name": "get_tenant", "output": {"fields": [{"name": "overdue", "type": "boolean"}]}}])
)]
#[case::deliberately_another_field(
    json!({"allowUnmatched": true, "approvals": [{"toolId": "send_money", "when": "!results('get_tenant').exists(r, has(r.overdue))"}]}), json!([])
)]
#[case::of_the_result(expecting("get_rent", "result.state == 'open' && result.amount > 0"), json!([]))]
#[case::of_an_earlier_step(expecting("send_money", "amount == steps.get_rent.result.amount"), json!([]))]
fn a_condition_that_fits_the_results_is_no_finding(#[case] policy: Value, #[case] tools: Value) {
    assert_eq!(findings(&policy, &tools), []);
}

#[test]
fn a_field_that_a_schema_refuses_is_an_error_whatever_the_skill_allows() {
    let policy = json!({"allowUnmatched": true, "approvals": [{"toolId": "send_money", "when": "!results('get_rent').exists(r, has(r.amuont))"}]});
    assert_eq!(findings(&policy, &json!([])).len(), 1);
}
