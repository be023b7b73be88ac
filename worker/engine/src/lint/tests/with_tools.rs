//! The lint against the tools of a server.

use super::*;

/// Returns the findings about a mail agent with these rules.
fn findings(policy: &Value) -> Vec<Finding> {
    findings_about(policy, &json!([]))
}

/// Returns the findings about a mail agent with these rules and declared tools.
fn findings_about(policy: &Value, tools: &Value) -> Vec<Finding> {
    let text = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let send = json!({"type": "object", "properties": {
        "recipients": {"type": "array", "items": {"type": "string"}}, "body": {"type": "string"}, "bcc": text,
    }});
    let place = json!({"type": "object", "properties": {"country": {"type": "string"}}});
    let pay = json!({"type": "object", "properties": {
        "amount": {"type": "number"}, "count": {"type": "integer", "minimum": 0}, "place": place,
        "mode": {"type": "string", "enum": ["fast", "slow"]}, "level": {"type": "integer", "enum": [1, 2, 3]},
    }});
    let spec = json!({
        "problem": {"statement": "Help with mail"}, "policy": policy, "tools": tools,
        "resources": [{"name": "files", "type": "filesystem"}],
        "mcpServer": {"service": {"name": "mail", "port": 8080}},
    });
    skill(&serde_json::from_value(spec).unwrap(), [("send_email", &send), ("send_money", &pay)])
}

#[rstest]
#[case::a_misspelt_tool(
    json!({"approvals": [{"toolId": "send_emial"}]}), "spec.policy.approvals[0].toolId",
    "no tool of the MCP server matches \"send_emial\": the rule protects nothing", Some("did you mean \"send_email\"?")
)]
#[case::a_blocked_tool(
    json!({"tools": {"blocked": ["send_emails"]}}), "spec.policy.tools.blocked[0]",
    "no tool of the MCP server matches \"send_emails\": the rule protects nothing", Some("did you mean \"send_email\"?")
)]
#[case::a_blocked_misspelt_prefix(
    json!({"tools": {"blocked": ["sned_*"]}}), "spec.policy.tools.blocked[0]",
    "no tool of the MCP server matches \"sned_*\": the rule protects nothing", Some("did you mean \"send_*\"?")
)]
#[case::a_blocked_pattern_that_no_tool_has(
    json!({"tools": {"blocked": ["delete_all|trade"]}}), "spec.policy.tools.blocked[0]",
    "no tool of the MCP server matches \"delete_all|trade\": the rule protects nothing",
    Some("correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true")
)]
#[case::a_pattern_as_a_step(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["s*l"]}]}), "spec.policy.workflows[0].steps[0]",
    "no tool of the MCP server matches \"s*l\", so subgoal_done could close the step",
    Some("correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true")
)]
#[case::a_prefix(
    json!({"approvals": [{"toolId": "trade_*"}]}), "spec.policy.approvals[0].toolId",
    "no tool of the MCP server matches \"trade_*\": the rule protects nothing",
    Some("correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true")
)]
#[case::a_misspelt_argument(
    json!({"approvals": [{"toolId": "send_email", "when": "has(args.recipents)"}]}), "spec.policy.approvals[0].when",
    "no tool that \"send_email\" matches has an argument \"recipents\"", Some("did you mean \"recipients\"?")
)]
#[case::a_list_compared_with_a_text(
    json!({"approvals": [{"toolId": "send_email", "when": "recipients == 'x@y'"}]}), "spec.policy.approvals[0].when",
    "a part of the condition is constant: a list == a string is always false", Some("recipients is a list")
)]
#[case::a_text_that_is_searched_like_a_list(
    json!({"approvals": [{"toolId": "send_*", "when": "'x@y' in body"}]}), "spec.policy.approvals[0].when",
    "the condition never has a result: a string cannot be in a string", Some("body is a string")
)]
#[case::an_argument_of_no_tool_of_a_prefix(
    json!({"approvals": [{"toolId": "send_*", "when": "has(args.too)"}]}), "spec.policy.approvals[0].when",
    "no tool that \"send_*\" matches has an argument \"too\"", None
)]
#[case::a_misspelt_field(
    json!({"approvals": [{"toolId": "send_*", "when": "has(args.place) && place.contry == 'US'"}]}), "spec.policy.approvals[0].when",
    "no tool that \"send_*\" matches has a field \"place.contry\"", Some("did you mean \"country\"?")
)]
#[case::a_misspelt_field_of_earlier_calls(
    json!({"approvals": [{"toolId": "send_email", "when": "calls('send_money').exists(c, has(c.amuont))"}]}),
    "spec.policy.approvals[0].when",
    "no tool that \"send_email\" matches has a field \"calls('send_money')[].amuont\"", Some("did you mean \"amount\"?")
)]
#[case::a_misspelt_field_of_a_step(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["send_money", "send_email"], "expect": [
        {"step": "send_email", "condition": "body == steps.send_money.args.bdy"}
    ]}]}),
    "spec.policy.workflows[0].expect[0].condition",
    "no tool that \"send_email\" matches has a field \"steps.send_money.args.bdy\"", None
)]
#[case::a_misspelt_name_in_the_arguments(
    json!({"approvals": [{"toolId": "send_email", "when": "'bdy' in args"}]}), "spec.policy.approvals[0].when",
    "no tool that \"send_email\" matches has an argument \"bdy\"", Some("did you mean \"body\"?")
)]
#[case::a_host_in_capitals(
    json!({"approvals": [{"toolId": "send_email", "when": "host(body) == 'Bit.ly'"}]}), "spec.policy.approvals[0].when",
    "the comparison can never be true: host() is never \"Bit.ly\": it returns only the name of a host, in lower case",
    Some("write \"bit.ly\"")
)]
#[case::a_text_of_a_list(
    json!({"lists": {"own": ["own.com", "@evil.com"]}, "approvals": [
        {"toolId": "send_email", "when": "recipients.exists(r, domain(r) in lists.own)"}
    ]}),
    "spec.policy.lists.own[1]",
    "the comparison can never be true: domain() is never \"@evil.com\": it returns only the name of a host, in lower case",
    Some("write \"evil.com\"")
)]
#[case::an_empty_list(
    json!({"lists": {"own": []}, "approvals": [{"toolId": "send_email", "when": "!(body in lists.own)"}]}),
    "spec.policy.lists.own", "the list is empty, so each comparison with it has the same result",
    Some("add a text, or remove the list from the conditions")
)]
#[case::the_source_of_a_list(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromUser(recipients)"}]}), "spec.policy.approvals[0].when",
    "the condition never has a result: fromUser() is not defined for a list: to check each item, write list.all(it, ...)", Some("recipients is a list")
)]
#[case::a_misspelt_tool_in_a_condition(
    json!({"approvals": [{"toolId": "send_email", "when": "size(calls('send_emial')) > 1"}]}), "spec.policy.approvals[0].when",
    "no tool of the MCP server matches \"send_emial\": the rule protects nothing", Some("did you mean \"send_email\"?")
)]
#[case::an_unknown_list(
    json!({"lists": {"payees": ["x"]}, "approvals": [
        {"toolId": "send_email", "when": "body in lists.payee"}, {"toolId": "send_email", "when": "body in lists.payees"},
    ]}),
    "spec.policy.approvals[0].when", "spec.policy.lists has no list \"payee\"", Some("did you mean \"payees\"?")
)]
#[case::a_later_step(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["send_email", "send_money"], "expect": [
        {"step": "send_email", "condition": "body == steps.send_money.result"}
    ]}]}),
    "spec.policy.workflows[0].expect[0].condition", "no step before \"send_email\" has the name \"send_money\"", None
)]
#[case::a_text_that_the_schema_does_not_allow(
    json!({"approvals": [{"toolId": "send_*", "when": "mode == 'fats'"}]}), "spec.policy.approvals[0].when",
    "the comparison can never be true: mode is never \"fats\", only \"fast\", \"slow\"", Some("write \"fast\"")
)]
#[case::a_number_that_the_schema_does_not_allow(
    json!({"approvals": [{"toolId": "send_*", "when": "level == 4"}]}), "spec.policy.approvals[0].when",
    "the comparison can never be true: level is never 4, only 1, 2, 3", None
)]
#[case::a_list_of_texts_that_the_schema_does_not_allow(
    json!({"lists": {"modes": ["Fast"]}, "approvals": [{"toolId": "send_money", "when": "mode in lists.modes"}]}),
    "spec.policy.lists.modes[0]", "the comparison can never be true: mode is never \"Fast\", only \"fast\", \"slow\"",
    Some("write \"fast\"")
)]
#[case::the_end_of_another_host(
    json!({"approvals": [{"toolId": "send_email", "when": "!host(body).endsWith('own.com')"}]}), "spec.policy.approvals[0].when",
    "host() ends with \"own.com\" also for \"evil-own.com\": write host(...) == 'own.com' || host(...).endsWith('.own.com')", None
)]
#[case::a_part_of_another_host(
    json!({"approvals": [{"toolId": "send_email", "when": "!recipients.all(r, domain(r).contains('own.com'))"}]}),
    "spec.policy.approvals[0].when",
    "domain() contains \"own.com\" also for \"own.com.evil.org\": write domain(...) == 'own.com' || domain(...).endsWith('.own.com')", None
)]
#[case::a_class_of_capitals(
    json!({"approvals": [{"toolId": "send_email", "when": "body.lowerAscii().matches('[A-Z]{2}[0-9]+')"}]}), "spec.policy.approvals[0].when",
    "lowerAscii() returns no capital letter such as 'A', so the pattern never matches", Some("write \"[a-z]{2}[0-9]+\"")
)]
#[case::a_size_below_zero(
    json!({"approvals": [{"toolId": "send_email", "when": "size(recipients) < 0"}]}), "spec.policy.approvals[0].when",
    "a part of the condition is constant: a size is never negative, so it is always false",
    Some("write size(...) == 0 for an empty value, and size(...) > 0 for another")
)]
#[case::a_required_argument_that_is_missing(
    json!({"approvals": [{"toolId": "write_file", "when": "!has(args.content)"}]}), "spec.policy.approvals[0].when",
    "!has(args.content) is always false: every call has the required argument \"content\"", Some("remove it, or compare the value of content")
)]
#[case::a_source_that_is_no_tool(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromTool(body, \"read_fiel\")"}]}), "spec.policy.approvals[0].when",
    "no tool of the MCP server matches \"read_fiel\": the rule protects nothing", Some("did you mean \"read_file\"?")
)]
#[case::a_pattern_with_capitals(
    json!({"approvals": [{"toolId": "send_email", "when": "body.lowerAscii().matches('HTTP:')"}]}), "spec.policy.approvals[0].when",
    "lowerAscii() returns no capital letter such as 'H', so the pattern never matches", Some("write \"http:\"")
)]
#[case::comparisons_that_exclude_each_other(
    json!({"approvals": [{"toolId": "send_money", "when": "amount < 0 && amount > 500"}]}), "spec.policy.approvals[0].when",
    "a part of the condition is constant: because of the comparisons of amount, it is always false",
    Some("write || between the comparisons if one of them is enough")
)]
#[case::a_number_as_a_text(
    json!({"approvals": [{"toolId": "send_email", "when": "body > '500'"}]}), "spec.policy.approvals[0].when",
    "the comparison is that of texts, letter by letter, and \"1000\" comes before \"500\": compare numbers, as in double(...) > 500.0, \
     or whole dates, as in ... >= '2026-01-01'",
    None
)]
#[case::an_empty_list_in_the_condition(
    json!({"approvals": [{"toolId": "send_email", "when": "!(body in [])"}]}), "spec.policy.approvals[0].when",
    "a part of the condition is constant: a value in [] is always false", Some("body is a string")
)]
#[case::a_threshold_of_a_misspelt_argument(
    json!({"guardrails": {"never": ["amuont > 500"]}}), "spec.policy.guardrails.never[0]",
    "no tool of the MCP server has an argument \"amuont\": the rule applies to no call without it", Some("did you mean \"amount\"?")
)]
#[case::evidence_of_no_tool(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["ask"], "expect": [{"step": "ask", "evidence": {"tool": "send_emial"}}]}]}),
    "spec.policy.workflows[0].expect[0].evidence.tool",
    "no tool of the MCP server matches \"send_emial\": the rule protects nothing", Some("did you mean \"send_email\"?")
)]
#[case::evidence_for_a_tool(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["send_email"], "expect": [{"step": "send_email", "evidence": {"tool": "ask_user"}}]}]}),
    "spec.policy.workflows[0].expect[0].evidence", "\"send_email\" is a tool, so only its own call completes the step",
    Some("leave evidence out, or write a condition")
)]
#[case::an_approver_for_a_tool(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["send_email"], "expect": [{"step": "send_email", "approver": "lead"}]}]}),
    "spec.policy.workflows[0].expect[0].approver", "\"send_email\" is a tool, so nobody is asked before the step is closed",
    Some("hold the call of the tool in spec.policy.approvals")
)]
#[case::a_step_in_words(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["ask"], "expect": [{"step": "ask", "condition": "result.ok == true"}]}]}),
    "spec.policy.workflows[0].expect[0].condition", "the step \"ask\" is not a tool, so no call can meet the condition",
    Some("name the tool whose result closes the step: evidence: {tool: NAME}")
)]
fn a_rule_that_does_not_fit_the_server_is_an_error(
    #[case] policy: Value,
    #[case] path: &str,
    #[case] message: &str,
    #[case] hint: Option<&str>,
) {
    let found = findings(&policy);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.path.as_str(), finding.message.as_str()), (Severity::Error, path, message));
    assert_eq!(finding.hint.as_deref(), hint);
}

/// The author may mean a tool of the server with a similar name.
#[rstest]
#[case::of_files("write_file", json!({"resources": [{"name": "files", "type": "filesystem"}]}))]
#[case::of_notes("memory_write", json!({"memory": {"bank": "write"}}))]
#[case::of_an_api("http_request", json!({"resources": [{"name": "api", "type": "api_endpoint"}]}))]
#[case::of_documentation("skill_doc", json!({"docs": "# Refunds"}))]
#[case::of_features("apply_feature", json!({"features": [
    {"name": "express", "optional": true, "testScenario": "A1 ships", "expectedResult": "It says when"},
]}))]
fn a_rule_for_a_core_tool_that_no_job_has_protects_nothing(#[case] tool: &str, #[case] having: Value) {
    let errors = |fields: &Value| -> Vec<String> {
        let mut spec = json!({
            "problem": {"statement": "Help with mail"}, "policy": {"approvals": [{"toolId": tool}]},
            "mcpServer": {"service": {"name": "mail", "port": 8080}},
        });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let schema = json!({"type": "object"});
        let found = rule_errors(&serde_json::from_value(spec).unwrap(), [("send_email", &schema)]);
        found.into_iter().map(|finding| finding.message).collect()
    };
    assert_eq!(errors(&json!({})), [format!("no tool of the MCP server matches {tool:?}: the rule protects nothing")]);
    assert_eq!(errors(&having), [""; 0]);
}

/// The example of the documentation of `api_endpoint` is one of them.
#[rstest]
#[case::a_method("http_request", "method == 'POST' && path == '/refunds'")]
#[case::no_other_method("http_request", "method != 'POST'")]
#[case::one_of_two_methods("http_request", "method in ['PUT', 'DELETE']")]
#[case::a_method_that_reads("http_get", "has(args.method) && method == 'HEAD'")]
#[case::an_endpoint("http_request", "resource == 'api'")]
#[case::a_file_system("write_file", "resource == 'files'")]
#[case::a_feature("apply_feature", "feature == 'express'")]
fn a_condition_may_compare_what_only_a_job_knows(#[case] tool: &str, #[case] when: &str) {
    let spec = json!({
        "problem": {"statement": "Help with mail"}, "policy": {"approvals": [{"toolId": tool, "when": when}]},
        "mcpServer": {"service": {"name": "mail", "port": 8080}},
        "resources": [{"name": "files", "type": "filesystem"}, {"name": "api", "type": "api_endpoint"}],
        "features": [{"name": "express", "optional": true, "testScenario": "A1 ships", "expectedResult": "It says when"}],
    });
    let schema = json!({"type": "object"});
    assert_eq!(rule_errors(&serde_json::from_value(spec).unwrap(), [("send_email", &schema)]), []);
}

#[test]
fn a_required_feature_that_the_prompt_shows_needs_no_tool() {
    let spec = json!({
        "problem": {"statement": "Help with mail"}, "policy": {"approvals": [{"toolId": "apply_feature"}]},
        "features": [{"name": "express", "testScenario": "A1 ships", "expectedResult": "It says when"}],
    });
    let schema = json!({"type": "object"});
    let found = rule_errors(&serde_json::from_value(spec).unwrap(), [("send_email", &schema)]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[rstest]
#[case::a_misspelt_tool(json!(["send_email", "send_emial"]), Some("did you mean \"send_email\"?"))]
#[case::a_misspelt_prefix(json!(["sned_*", "send_m*"]), Some("did you mean \"send_*\"?"))]
#[case::another_tool(json!(["trade"]), Some("correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true"))]
#[case::tools_that_exist(json!(["send_email", "send_*", "memory_write", "script_check"]), None)]
fn a_feature_allows_only_tools_that_exist(#[case] allowed: Value, #[case] hint: Option<&str>) {
    let errors = |allow_unmatched: bool| -> Vec<Finding> {
        let spec = json!({
            "problem": {"statement": "Help with mail"}, "policy": {"allowUnmatched": allow_unmatched},
            "memory": {"bank": "write"}, "scripts": {"image": "busybox", "files": {"check.sh": "exit 0"}},
            "mcpServer": {"service": {"name": "mail", "port": 8080}},
            "features": [{"name": "a", "testScenario": "When asked", "expectedResult": "It is sent", "allow": allowed}],
        });
        let schema = json!({"type": "object"});
        let tools = [("send_email", &schema), ("send_money", &schema)];
        rule_errors(&serde_json::from_value(spec).unwrap(), tools)
    };
    let found = errors(false);
    let hints: Vec<Option<&str>> = found.iter().map(|finding| finding.hint.as_deref()).collect();
    assert_eq!(hints, hint.map(Some).into_iter().collect::<Vec<_>>(), "{found:?}");
    assert!(found.iter().all(|finding| finding.path.starts_with("spec.features[0].allow[")), "{found:?}");
    assert!(found.iter().all(|finding| finding.message.ends_with("it allows nothing")), "{found:?}");
    assert_eq!(errors(true), []);
}

#[rstest]
#[case::a_prefix_of_tools_with_other_arguments(json!({"approvals": [{"toolId": "send_*", "when": "has(args.bcc) && bcc != ''"}]}))]
#[case::an_item_of_a_list(json!({"approvals": [{"toolId": "send_email", "when": "'x@y' in recipients"}]}))]
#[case::a_minimum_of_the_schema(json!({"approvals": [{"toolId": "send_money", "when": "count > 5"}]}))]
#[case::a_lower_limit(json!({"approvals": [{"toolId": "send_money", "when": "amount > 5 || amount < 0"}]}))]
#[case::a_lower_limit_of_another_rule(json!({
    "approvals": [{"toolId": "send_money", "when": "amount > 5"}], "guardrails": {"never": ["amount <= 0"]},
}))]
#[case::deliberately_no_tool(json!({"approvals": [{"toolId": "trade_*"}], "allowUnmatched": true}))]
#[case::prose(json!({"guardrails": {"never": ["Never call customers", "Never write snake_case", "Never pay more than 500", "Lie"]}}))]
#[case::a_text_that_the_schema_allows(json!({"approvals": [{"toolId": "send_money", "when": "mode in ['slow'] || mode.startsWith('fa')"}]}))]
#[case::a_number_that_the_schema_allows(json!({"approvals": [{"toolId": "send_money", "when": "level == 3 || 2.0 == double(level)"}]}))]
#[case::a_source_beside_the_default(json!({"effects": "require_approval", "approvals": [{"toolId": "send_email", "when": "!fromUser(body)"}]}))]
#[case::the_end_of_a_host(json!({"approvals": [{"toolId": "send_email", "when": "host(body) == 'own.com' || host(body).endsWith('.own.com')"}]}))]
#[case::the_end_of_hosts_to_hold(json!({"approvals": [{"toolId": "send_email", "when": "host(body).endsWith('evil.com')"}]}))]
#[case::a_part_of_hosts_to_hold(json!({"approvals": [{"toolId": "send_email", "when": "host(body).contains('evil.com')"}]}))]
#[case::a_pattern_to_hold(json!({"approvals": [{"toolId": "send_email", "when": "body.matches('[A-Z][0-9]{7}')"}]}))]
#[case::a_pattern_with_anchors(json!({"approvals": [{"toolId": "send_email", "when": "!body.matches('^own[.]com$')"}]}))]
#[case::an_optional_argument_that_is_missing(json!({"approvals": [{"toolId": "send_email", "when": "!has(args.bcc) || bcc == ''"}]}))]
#[case::a_required_argument_that_exists(json!({"approvals": [{"toolId": "write_file", "when": "has(args.content) && content == ''"}]}))]
#[case::the_end_of_a_text(json!({"approvals": [{"toolId": "send_email", "when": "!recipients.all(r, r.endsWith('@own.com'))"}]}))]
#[case::dates_and_hours(json!({"approvals": [{"toolId": "send_email", "when": "body >= '2026-01-01' || body < '09'"}]}))]
#[case::a_blocked_core_tool_that_no_job_has(json!({"tools": {"blocked": ["memory_write", "http_request"]}}))]
#[case::the_fields_within_an_argument(json!({"approvals": [
    {"toolId": "send_money", "when": "has(args.place) && !place.all(field, field in ['country'])", "action": "deny"},
]}))]
#[case::a_core_tool(json!({"approvals": [{"toolId": "write_file", "when": "path != 'a.md'"}]}))]
#[case::the_sources_of_the_items(json!({"approvals": [
    {"toolId": "send_email", "when": "!recipients.all(r, fromUser(r) || fromTool(r, 'read_file'))"},
]}))]
#[case::a_source_that_another_rule_about_the_tool_protects(json!({"approvals": [
    {"toolId": "send_email", "when": "fromUser(body) && size(recipients) > 5"}, {"toolId": "send_*", "when": "!fromUser(args.body)"},
]}))]
#[case::a_source_beside_another_value(json!({"approvals": [{"toolId": "send_email", "when": "fromUser(body) && !fromUser(bcc)"}]}))]
#[case::a_word_of_people(json!({"approvals": [{"toolId": "send_email", "when": "fromUser('urgent')"}]}))]
#[case::a_source_that_is_not_trusted(json!({"approvals": [{"toolId": "send_email", "when": "fromTool(body, 'read_file')"}]}))]
#[case::a_list_with_two_uses(json!({"lists": {"own": ["Own.com"]}, "approvals": [
    {"toolId": "send_email", "when": "!recipients.all(r, r in lists.own || domain(r) in lists.own)"},
]}))]
#[case::conditions_of_steps(json!({"workflows": [{"name": "w", "required": true, "steps": ["send_email", "send_money"], "expect": [
    {"step": "send_email", "condition": "result.ok == true"},
    {"step": "send_money", "condition": "amount <= steps.send_email.result.amount"},
]}]}))]
#[case::an_order_that_is_only_advice(json!({"workflows": [{"name": "w", "required": false, "steps": ["send_email", "send_money"]}]}))]
#[case::an_optional_workflow_in_words(json!({"workflows": [{"name": "w", "steps": ["send_email", "say goodbye"]}]}))]
#[case::a_prefix_before_another_tool(json!({"workflows": [{"name": "w", "required": true, "steps": ["read_*", "send_money"]}]}))]
#[case::evidence_for_a_step_in_words(json!({"workflows": [
    {"name": "w", "required": true, "steps": ["confirm with the customer", "the manager agrees", "send_money"], "expect": [
        {"step": "confirm with the customer", "evidence": {"tool": "ask_user"}, "condition": "size(args.text) > 0"},
        {"step": "the manager agrees", "approver": "manager"},
    ]},
]}))]
fn a_rule_that_fits_the_server_is_no_finding(#[case] policy: Value) {
    assert_eq!(findings(&policy), []);
}

#[rstest]
#[case::a_condition(
    json!({"approvals": [{"toolId": "send_money", "when": "double(amount) > 500.0"}]}), "spec.policy.approvals[0].when",
    "write \"double(amount) > 500.0 || amount < 0\", or give amount a minimum in spec.tools[].inputs"
)]
#[case::with_a_factor(
    json!({"approvals": [{"toolId": "send_money", "when": "amount * 2 > 1000"}]}), "spec.policy.approvals[0].when",
    "write \"amount * 2 > 1000 || amount < 0\", or give amount a minimum in spec.tools[].inputs"
)]
#[case::with_another_argument(
    json!({"approvals": [{"toolId": "send_money", "when": "amount + count > 1000"}]}), "spec.policy.approvals[0].when",
    "write \"amount + count > 1000 || amount < 0\", or give amount a minimum in spec.tools[].inputs"
)]
#[case::turned_round(
    json!({"approvals": [{"toolId": "send_money", "when": "!(500 >= amount)"}]}), "spec.policy.approvals[0].when",
    "write \"!(500 >= amount) || amount < 0\", or give amount a minimum in spec.tools[].inputs"
)]
#[case::a_guardrail(
    json!({"guardrails": {"always": ["amount <= 500"]}}), "spec.policy.guardrails.always[0]",
    "add the rule \"amount < 0\" under never, or give amount a minimum in spec.tools[].inputs"
)]
fn an_upper_limit_without_a_lower_one_is_a_warning(#[case] policy: Value, #[case] path: &str, #[case] hint: &str) {
    let found = findings(&policy);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Warning, path));
    assert!(finding.message.ends_with("has no lower limit: a negative amount passes"), "{finding:?}");
    assert_eq!(finding.hint.as_deref(), Some(hint));
}

#[rstest]
#[case::alone(json!({}), json!({"maximum": 500}), true)]
#[case::with_a_minimum(json!({}), json!({"maximum": 500, "minimum": 0}), false)]
#[case::with_a_rule(json!({"guardrails": {"never": ["amount < 0"]}}), json!({"maximum": 500}), false)]
#[case::below_zero(json!({}), json!({"maximum": -1}), false)]
fn a_maximum_of_an_input_without_a_minimum_is_a_warning(
    #[case] policy: Value,
    #[case] limits: Value,
    #[case] is_reported: bool,
) {
    let mut input = json!({"name": "amount", "type": "number"});
    merge(&mut input, limits);
    let found = findings_about(&policy, &json!([{"name": "send_money", "inputs": [input]}]));
    let of_maximum = |finding: &Finding| (finding.severity, finding.path.clone(), finding.message.clone());
    let expected = is_reported.then(|| {
        let message = "\"maximum: 500\" has no lower limit: a negative amount passes";
        (Severity::Warning, "spec.tools[0].inputs[0].maximum".to_owned(), message.to_owned())
    });
    assert_eq!(found.iter().map(of_maximum).collect::<Vec<_>>(), Vec::from_iter(expected));
}

#[rstest]
#[case::items("splits.exists(s, s.amount > 500)", Some("splits[].amount"))]
#[case::items_that_are_not_required(
    "has(args.splits) && splits.exists(s, has(s.amount) && s.amount > 500)",
    Some("splits[].amount")
)]
#[case::a_field("payment.amount > 500", Some("payment.amount"))]
#[case::a_field_of_which_nothing_is_known("note.amount > 500", Some("note.amount"))]
#[case::items_with_a_lower_limit("splits.exists(s, s.amount > 500 || s.amount < 0)", None)]
#[case::a_field_with_a_lower_limit("payment.amount > 500 || payment.amount <= 0", None)]
#[case::a_minimum_of_the_schema("splits.exists(s, s.share > 50)", None)]
#[case::of_earlier_calls("calls('pay').exists(c, c.payment.amount > 500)", None)]
fn an_upper_limit_within_an_argument_has_a_lower_one(#[case] when: &str, #[case] field: Option<&str>) {
    let amount = json!({"type": "number"});
    let split = json!({"type": "object", "properties": {"amount": amount, "share": {"type": "number", "minimum": 0}}});
    let payment = json!({"type": "object", "properties": {"amount": amount}});
    let schema = json!({"type": "object", "properties": {
        "splits": {"type": "array", "items": split}, "payment": payment, "note": {"type": "object"},
    }});
    let messages = |guardrails: Value| -> Vec<String> {
        let spec = json!({
            "problem": {"statement": "Help with money"}, "mcpServer": {"service": {"name": "bank", "port": 8080}},
            "policy": {"guardrails": guardrails, "approvals": [{"toolId": "pay", "when": when}]},
        });
        let found = skill(&serde_json::from_value(spec).unwrap(), [("pay", &schema)]);
        found.into_iter().map(|finding| finding.message).collect()
    };
    let message = |field: &str| format!("{when:?} has no lower limit: a negative {field} passes");
    assert_eq!(messages(json!({})), Vec::from_iter(field.map(message)));
    // A guardrail is about every part with the name.
    assert_eq!(messages(json!({"never": ["amount < 0"]})), [""; 0]);
}

#[rstest]
#[case::a_list("target == 'x@evil.com'", json!([]), Some("target may also be a list"))]
#[case::a_list_and_several_texts("target in ['x@evil.com', 'y@evil.com']", json!([]), Some("target may also be a list"))]
#[case::a_number("amount == '600'", json!([]), Some("amount may also be a number"))]
#[case::a_text("!(amount != 600)", json!([]), Some("amount may also be a string"))]
#[case::each_type("target == 'x' || 'x' in target", json!([]), None)]
#[case::both_types("amount == 600 || amount == '600'", json!([]), None)]
#[case::every_other_value_is_held("target != 'a@own.com'", json!([]), None)]
#[case::a_declared_type("target == 'x@evil.com'", json!([{"name": "target", "type": "string"}]), None)]
#[case::one_type("body == 'x'", json!([]), None)]
#[case::values_of_the_schema("level == 'high'", json!([]), None)]
fn a_comparison_of_one_type_does_not_see_the_others(
    #[case] when: &str,
    #[case] inputs: Value,
    #[case] expected: Option<&str>,
) {
    let schema = json!({"type": "object", "properties": {
        "target": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "amount": {"type": ["number", "string"]}, "body": {"type": "string"}, "level": {"enum": ["high", 1]},
    }});
    let spec = json!({
        "problem": {"statement": "Help with mail"}, "mcpServer": {"service": {"name": "mail", "port": 8080}},
        "tools": [{"name": "send", "inputs": inputs}], "policy": {"approvals": [{"toolId": "send", "when": when}]},
    });
    let found = skill(&serde_json::from_value(spec).unwrap(), [("send", &schema)]);
    let messages: Vec<_> = found.iter().map(|finding| (finding.severity, finding.message.as_str())).collect();
    let message = expected.map(|value| format!("{value}, and then the comparison lets the call pass"));
    assert_eq!(messages, Vec::from_iter(message.as_deref().map(|message| (Severity::Warning, message))));
}

#[rstest]
#[case::no_number("level in [4, 5]", &[(Severity::Error, "level is never 4"), (Severity::Error, "level is never 5")])]
#[case::no_fraction("level in [1.5]", &[(Severity::Error, "level is never 1.5")])]
#[case::one_number_of_two("!(level in [3, 4])", &[(Severity::Warning, "level is never 4")])]
#[case::no_text("mode in ['fats', 'turbo']", &[(Severity::Error, "mode is never \"fats\""), (Severity::Error, "mode is never \"turbo\"")])]
#[case::one_text_of_two("mode in ['slow', 'fats']", &[(Severity::Warning, "mode is never \"fats\"")])]
#[case::one_text_of_a_choice("mode == (count > 5 ? 'slow' : 'fats')", &[(Severity::Warning, "mode is never \"fats\"")])]
#[case::a_text_beside_the_list(
    "mode in ['slow', 'fats'] || mode == 'fats'",
    &[(Severity::Error, "mode is never \"fats\""), (Severity::Warning, "mode is never \"fats\"")]
)]
#[case::each_number("level in [1, 2.0]", &[])]
#[case::another_argument("level in [4, count]", &[])]
fn an_item_of_a_list_that_the_schema_does_not_allow_is_a_finding(
    #[case] when: &str,
    #[case] expected: &[(Severity, &str)],
) {
    let found = findings(&json!({"approvals": [{"toolId": "send_*", "when": when}]}));
    let sentences: Vec<(Severity, &str)> = found
        .iter()
        .map(|finding| {
            let sentence = finding.message.strip_prefix("the comparison can never be true: ").unwrap();
            (finding.severity, sentence.split(',').next().unwrap())
        })
        .collect();
    assert_eq!(sentences, expected);
}

/// Both tools have an amount.
fn of_two_tools(approvals: &Value) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "number"}}});
    let spec = json!({
        "problem": {"statement": "Help with money"}, "policy": {"approvals": approvals},
        "mcpServer": {"service": {"name": "bank", "port": 8080}},
    });
    let found = skill(&serde_json::from_value(spec).unwrap(), [("send_money", &schema), ("send_gift", &schema)]);
    found.into_iter().map(|finding| finding.path).collect()
}

#[rstest]
#[case::of_the_same_tool("send_money", "send_money", true)]
#[case::of_another_tool("send_money", "send_gift", false)]
#[case::of_a_prefix("send_money", "send_*", true)]
#[case::of_one_of_two_tools("send_*", "send_money", false)]
#[case::of_every_tool("send_*", "*", true)]
fn a_lower_limit_counts_for_the_tools_that_it_names(
    #[case] upper: &str,
    #[case] lower: &str,
    #[case] is_covered: bool,
) {
    let rules = json!([{"toolId": upper, "when": "amount > 500"}, {"toolId": lower, "when": "amount < 0"}]);
    let expected: &[&str] = if is_covered { &[] } else { &["spec.policy.approvals[0].when"] };
    assert_eq!(of_two_tools(&rules), expected);
}

#[test]
fn without_the_server_s_tools_a_guardrail_on_an_undeclared_tool_is_not_called_text() {
    let found = declared_only(&with(never("Never use delete_order")));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        finding.message,
        "\"Never use delete_order\" is enforced only if the MCP server lists a tool \"delete_order\""
    );
}

#[rstest]
#[case::a_declared_tool(json!({}), json!([{"name": "send_emial"}]), "spec.tools[0].name", "did you mean \"send_email\"?")]
#[case::a_declared_prefix(json!({}), json!([{"name": "sned_*"}]), "spec.tools[0].name", "did you mean \"send_*\"?")]
#[case::an_allowed_tool(
    json!({"tools": {"allowed": ["send_mony"]}}), json!([]), "spec.policy.tools.allowed[0]", "did you mean \"send_money\"?"
)]
#[case::an_allowed_tool_that_is_declared(
    json!({"tools": {"allowed": ["send_mony"]}}), json!([{"name": "send_money"}]), "spec.policy.tools.allowed[0]",
    "did you mean \"send_money\"?"
)]
fn a_misspelt_tool_without_a_rule_is_an_error(
    #[case] policy: Value,
    #[case] tools: Value,
    #[case] path: &str,
    #[case] hint: &str,
) {
    let errors = |policy: &Value| -> Vec<Finding> {
        let found = findings_about(policy, &tools);
        found.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
    };
    let found = errors(&policy);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.path.as_str(), finding.hint.as_deref()), (path, Some(hint)));
    let mut with_exception = policy;
    with_exception["allowUnmatched"] = json!(true);
    assert_eq!(errors(&with_exception), []);
}

#[rstest]
#[case::of_another_server(json!([{"name": "trade", "readOnly": true}]))]
#[case::of_every_tool(json!([{"name": "*", "readOnly": true}]))]
#[case::of_a_newer_version_of_the_server(json!([{"name": "send_email"}, {"name": "send_emails"}]))]
fn a_declared_tool_that_the_server_lacks_is_no_error(#[case] tools: Value) {
    let found = findings_about(&json!({}), &tools);
    assert!(found.iter().all(|finding| finding.severity == Severity::Warning), "{found:?}");
}

#[test]
fn a_blocked_name_that_is_like_no_tool_is_only_a_warning() {
    let found = findings(&json!({"tools": {"blocked": ["wipe_disk"], "allowed": ["send_*", "trade"]}}));
    let paths: Vec<_> = found.iter().map(|finding| (finding.severity, finding.path.as_str())).collect();
    let warnings =
        ["spec.policy.tools.allowed[1]", "spec.policy.tools.blocked[0]"].map(|path| (Severity::Warning, path));
    assert_eq!(paths, warnings);
}

#[test]
fn a_list_that_no_condition_reads_is_a_warning() {
    let found = findings(&json!({"lists": {"payees": ["ada"]}}));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Warning, "spec.policy.lists.payees"));
}

#[test]
fn a_list_from_a_config_map_is_known() {
    let source = json!({"configMapKeyRef": {"name": "lists", "key": "payees"}});
    let with = |when: &str| {
        findings(&json!({"listsFrom": {"payees": source}, "approvals": [{"toolId": "send_email", "when": when}]}))
    };
    assert_eq!(with("!(body in lists.payees)"), []);
    let found = with("!(body in lists.payee)");
    let [misspelt, unused] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(misspelt.hint.as_deref(), Some("did you mean \"payees\"?"));
    assert_eq!((unused.severity, unused.path.as_str()), (Severity::Warning, "spec.policy.listsFrom.payees"));
}

#[rstest]
#[case::a_condition_that_is_never_true(
    json!({"approvals": [{"toolId": "send_email", "when": "false"}]}), "spec.policy.approvals[0].when",
    "the condition is always false: the rule applies to no call"
)]
#[case::a_condition_with_a_decisive_side(
    json!({"approvals": [{"toolId": "send_email", "when": "body == 'x' || true"}]}), "spec.policy.approvals[0].when",
    "the condition is always true: the rule applies to every call"
)]
#[case::a_blank_in_a_text(
    json!({"approvals": [{"toolId": "send_email", "when": "body == 'x '"}]}), "spec.policy.approvals[0].when",
    "\"x \" has blanks or quotes at its ends, and a value must have the same"
)]
#[case::a_text_of_a_list_that_the_schema_does_not_allow(
    json!({"lists": {"modes": ["slow", "Fast"]}, "approvals": [{"toolId": "send_money", "when": "mode in lists.modes"}]}),
    "spec.policy.lists.modes[1]", "the comparison can never be true: mode is never \"Fast\", only \"fast\", \"slow\""
)]
#[case::quotes_in_a_list(
    json!({"lists": {"own": ["'ada'"]}, "approvals": [{"toolId": "send_email", "when": "body in lists.own"}]}),
    "spec.policy.lists.own[0]", "\"'ada'\" has blanks or quotes at its ends, and a value must have the same"
)]
#[case::requirements_of_an_optional_workflow(
    json!({"workflows": [{"name": "w", "steps": ["send_email"], "expect": [{"step": "send_email", "condition": "body != ''"}]}]}),
    "spec.policy.workflows[0].expect", "the workflow \"w\" is not required, so no call is denied if its steps are not done"
)]
#[case::the_order_of_an_optional_workflow(
    json!({"workflows": [{"name": "w", "steps": ["send_email", "send_money"]}]}), "spec.policy.workflows[0]",
    "the workflow \"w\" is not required, so the order of its steps binds no call"
)]
#[case::a_step_that_an_earlier_one_matches(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["*", "send_money"]}]}), "spec.policy.workflows[0].steps[1]",
    "the step \"*\" matches \"send_money\" too, so a call of send_money does not wait for that step"
)]
#[case::evidence_of_every_tool(
    json!({"workflows": [{"name": "w", "required": true, "steps": ["ask"], "expect": [{"step": "ask", "evidence": {"tool": "*"}}]}]}),
    "spec.policy.workflows[0].expect[0].evidence.tool", "the result of every tool can close \"ask\""
)]
#[case::a_rule_that_opens_a_denied_tool(
    json!({"effects": "deny", "approvals": [{"toolId": "send_money", "when": "count > 5"}]}), "spec.policy.approvals[0]",
    "names send_money, so effects: deny does not apply to it: a call that no rule holds is allowed"
)]
#[case::a_threshold_that_opens_a_held_tool(
    json!({"effects": "require_approval", "approvals": [{"toolId": "send_money", "when": "count > 5"}]}), "spec.policy.approvals[0]",
    "names send_money, so effects: require_approval does not apply to it: a call that no rule holds is allowed"
)]
#[case::an_earlier_call_that_opens_a_held_tool(
    json!({"effects": "require_approval", "approvals": [{"toolId": "send_money", "when": "calls('send_money').exists(it, it.amount == amount)"}]}),
    "spec.policy.approvals[0]",
    "names send_money, so effects: require_approval does not apply to it: a call that no rule holds is allowed"
)]
#[case::a_number_of_calls_that_opens_a_held_tool(
    json!({"effects": "require_approval", "approvals": [{"toolId": "send_email", "when": "calls('send_email').size() >= 3"}]}),
    "spec.policy.approvals[0]",
    "names send_email, so effects: require_approval does not apply to it: a call that no rule holds is allowed"
)]
#[case::an_optional_argument_that_opens_a_held_tool(
    json!({"effects": "require_approval", "approvals": [{"toolId": "send_money", "when": "has(args.mode) && mode != 'slow'"}]}),
    "spec.policy.approvals[0]",
    "names send_money, so effects: require_approval does not apply to it: a call that no rule holds is allowed"
)]
#[case::a_wildcard_in_a_text(
    json!({"approvals": [{"toolId": "send_email", "when": "body != '*@own.com'"}]}), "spec.policy.approvals[0].when",
    "\"*@own.com\" has a \"*\", which stands only for itself here: write startsWith(), endsWith() or matches()"
)]
#[case::a_source_that_the_model_can_write(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromTool(body, 'send_email')"}]}), "spec.policy.approvals[0].when",
    "send_email is not readOnly: its result may repeat what the model passes to it"
)]
#[case::an_argument_in_quotes(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromUser('body')"}]}), "spec.policy.approvals[0].when",
    "fromUser('body') looks for the word \"body\", and not for the argument of this name"
)]
#[case::an_argument_of_a_tool_in_quotes(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromTool('body', 'read_file')"}]}), "spec.policy.approvals[0].when",
    "fromTool('body', ...) looks for the word \"body\", and not for the argument of this name"
)]
#[case::a_pattern_without_anchors(
    json!({"approvals": [{"toolId": "send_email", "when": "!body.matches('own[.]com')"}]}), "spec.policy.approvals[0].when",
    "the pattern \"own[.]com\" also matches a longer text that contains a match, and then the call passes"
)]
#[case::a_pattern_for_the_end_of_a_host(
    json!({"approvals": [{"toolId": "send_email", "when": "!host(body).matches('own[.]com$')"}]}), "spec.policy.approvals[0].when",
    "the pattern \"own[.]com$\" also matches a longer text that contains a match, and then the call passes"
)]
#[case::the_end_of_an_address_in_a_list(
    json!({"lists": {"own": ["own.com"]}, "approvals": [{"toolId": "send_email", "when": "!lists.own.exists(d, body.endsWith(d))"}]}),
    "spec.policy.lists.own[0]",
    "a text ends with \"own.com\" also if it ends with \"evil-own.com\": write \"@own.com\" or \".own.com\", or compare host(...) or domain(...)"
)]
#[case::a_part_of_a_host_without_a_dot(
    json!({"approvals": [{"toolId": "send_email", "when": "!host(body).contains('own')"}]}), "spec.policy.approvals[0].when",
    "host() contains \"own\" also for \"own.evil.org\": write host(...) == 'own' || host(...).endsWith('.own')"
)]
#[case::a_required_argument_that_is_missing_beside_another_reason(
    json!({"approvals": [{"toolId": "write_file", "when": "!has(args.content) || content == ''"}]}), "spec.policy.approvals[0].when",
    "!has(args.content) is always false: every call has the required argument \"content\""
)]
#[case::a_value_of_people(
    json!({"approvals": [{"toolId": "send_email", "when": "fromUser(body) && !fromTool(body, 'read_file')"}]}), "spec.policy.approvals[0].when",
    "the rule applies if people wrote body, and a value from elsewhere passes"
)]
#[case::a_value_of_people_that_is_protected_for_another_tool(
    json!({"approvals": [{"toolId": "send_money", "when": "fromUser(amount)"}, {"toolId": "send_email", "when": "!fromUser(body)"}]}),
    "spec.policy.approvals[0].when", "the rule applies if people wrote amount, and a value from elsewhere passes"
)]
#[case::all_of_no_earlier_calls(
    json!({"approvals": [{"toolId": "send_email", "when": "!calls('send_money').all(c, c.count == 5)"}]}), "spec.policy.approvals[0].when",
    "calls('send_money').all(...) is also true if there are none"
)]
#[case::an_approver_of_a_rule_that_denies(
    json!({"approvals": [{"toolId": "send_money", "when": "count > 5", "action": "deny", "approver": "boss"}]}),
    "spec.policy.approvals[0].approver", "\"boss\" is not asked, because the rule denies calls"
)]
#[case::an_approver_of_a_limit_that_denies(
    json!({"limits": [{"tool": "send_money", "count": true, "per": "job", "max": 1, "action": "deny", "approver": "boss"}]}),
    "spec.policy.limits[0].approver", "\"boss\" is not asked, because the rule denies calls"
)]
#[case::one_recipient_of_people(
    json!({"approvals": [{"toolId": "send_email", "when": "!recipients.exists(to, fromUser(to))"}]}), "spec.policy.approvals[0].when",
    "one item of recipients lets the call pass, whatever the other items are"
)]
#[case::one_recipient_with_a_known_end(
    json!({"approvals": [{"toolId": "send_email", "when": "!recipients.exists(r, r.endsWith('@own.com'))"}]}), "spec.policy.approvals[0].when",
    "one item of recipients lets the call pass, whatever the other items are"
)]
#[case::a_count_of_known_recipients(
    json!({"approvals": [{"toolId": "send_email", "when": "recipients.filter(r, fromUser(r)).size() == 0"}]}), "spec.policy.approvals[0].when",
    "one item of recipients lets the call pass, whatever the other items are"
)]
#[case::a_known_recipient(
    json!({"approvals": [{"toolId": "send_email", "when": "!('a@own.com' in recipients)"}]}), "spec.policy.approvals[0].when",
    "only one item of recipients is checked, and a call may have more"
)]
#[case::exactly_one_stranger(
    json!({"approvals": [{"toolId": "send_email", "when": "recipients.exists_one(r, !fromUser(r))"}]}), "spec.policy.approvals[0].when",
    "exists_one() is false if it is true for two items of recipients"
)]
#[case::the_first_recipient(
    json!({"approvals": [{"toolId": "send_email", "when": "!fromUser(recipients[0])"}]}), "spec.policy.approvals[0].when",
    "only one item of recipients is checked, and a call may have more"
)]
fn a_rule_that_may_not_mean_what_it_says_is_a_warning(
    #[case] policy: Value,
    #[case] path: &str,
    #[case] message: &str,
) {
    let found = findings(&policy);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.path.as_str(), finding.message.as_str()), (Severity::Warning, path, message));
}

#[rstest]
#[case::a_value("!(!fromUser(body))", "write !fromUser(body)")]
#[case::the_items_of_a_list("recipients.exists(to, fromUser(to))", "write !recipients.all(it, fromUser(it))")]
fn a_condition_about_what_people_wrote_has_the_form_to_write(#[case] when: &str, #[case] hint: &str) {
    let found = findings(&json!({"approvals": [{"toolId": "send_email", "when": when}]}));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.hint.as_deref()), (Severity::Warning, Some(hint)));
}

#[rstest]
#[case::that_allows(json!({"allowed": "conditional", "condition": "fromUser(body)"}), 0)]
#[case::that_holds(json!({"requiresApproval": "conditional", "condition": "fromUser(body)"}), 1)]
fn a_policy_of_a_tool_may_allow_what_people_wrote(#[case] policy: Value, #[case] count: usize) {
    let found = findings_about(&json!({}), &json!([{"name": "send_email", "policy": policy}]));
    assert_eq!(found.len(), count, "{found:?}");
}

#[rstest]
#[case::every_call_is_held(json!([]), json!([{"toolId": "send_money"}]))]
#[case::the_author_says_so(json!([{"name": "send_money", "policy": {"allowed": "always"}}]), json!([{"toolId": "send_money", "when": "count > 5"}]))]
#[case::large_amounts_are_denied(
    json!([]), json!([{"toolId": "send_money", "when": "count > 5"}, {"toolId": "send_money", "when": "count > 9", "action": "deny"}])
)]
#[case::a_prefix(json!([]), json!([{"toolId": "send_m*", "when": "count > 5"}]))]
fn a_denied_tool_may_be_opened_on_purpose(#[case] tools: Value, #[case] approvals: Value) {
    assert_eq!(findings_about(&json!({"effects": "deny", "approvals": approvals}), &tools), []);
}

#[rstest]
#[case::an_unknown_argument(json!({"effects": "deny"}), "urls", Severity::Error, "spec.tools[0].sends[0]")]
#[case::a_rule_of_the_tool(
    json!({"effects": "deny", "approvals": [{"toolId": "read_page", "when": "url == 'x'"}]}), "url", Severity::Warning, "spec.tools[0].sends"
)]
#[case::without_a_default(json!({}), "url", Severity::Warning, "spec.tools[0].sends")]
fn a_declaration_of_what_a_tool_sends_must_have_an_effect(
    #[case] policy: Value,
    #[case] argument: &str,
    #[case] severity: Severity,
    #[case] path: &str,
) {
    let spec = json!({
        "problem": {"statement": "Read pages"}, "policy": policy, "mcpServer": {"service": {"name": "web", "port": 8080}},
        "tools": [{"name": "read_page", "readOnly": true, "sends": [argument]}],
    });
    let schema = json!({"type": "object", "properties": {"url": {"type": "string"}}});
    let found = skill(&serde_json::from_value(spec).unwrap(), [("read_page", &schema)]);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.severity, finding.path.as_str()), (severity, path));
}

#[rstest]
#[case::a_misspelt_argument(
    json!({"name": "amuont", "type": "number", "maximum": 5}), "name", "no tool that \"send_money\" matches has an argument \"amuont\"",
    Some("did you mean \"amount\"?")
)]
#[case::a_misspelt_argument_that_is_required(
    json!({"name": "amuont", "type": "number", "required": true}), "name",
    "no tool that \"send_money\" matches has an argument \"amuont\", so every call is denied", Some("did you mean \"amount\"?")
)]
#[case::another_type(
    json!({"name": "amount", "type": "string"}), "type", "send_money has amount as a number, so every call with it is denied", None
)]
#[case::other_values(
    json!({"name": "mode", "type": "string", "enum": ["Fast"]}), "enum",
    "send_money accepts none of these values for mode, so every call with it is denied", None
)]
#[case::a_pattern(
    json!({"name": "memo", "type": "string", "pattern": "(a+)\\1"}), "pattern", "every call is denied, because of the pattern: ", None
)]
fn an_input_that_protects_nothing_or_denies_everything_is_an_error(
    #[case] input: Value,
    #[case] field: &str,
    #[case] message: &str,
    #[case] hint: Option<&str>,
) {
    let found = findings_about(&json!({}), &json!([{"name": "send_money", "inputs": [input]}]));
    let path = format!("spec.tools[0].inputs[0].{field}");
    let finding = found.iter().find(|finding| finding.path == path).unwrap_or_else(|| panic!("{found:?}"));
    assert!(finding.severity == Severity::Error && finding.message.starts_with(message), "{finding:?}");
    assert_eq!(finding.hint.as_deref(), hint);
}

/// The rules of three attacks on a tool whose schema lists nothing.
#[rstest]
#[case::nothing_listed(json!({"type": "object"}), json!([]), &["amount", "recipents", "recipient"])]
#[case::anything_accepted(json!({"type": "object", "additionalProperties": true}), json!([]), &["amount", "recipents", "recipient"])]
#[case::other_properties(json!({"properties": {"memo": {}}, "additionalProperties": true}), json!([]), &["amount", "recipents", "recipient"])]
#[case::a_reference(
    json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"recipient": {}, "amount": {}}}}}), json!([]),
    &["recipents"]
)]
#[case::declared(
    json!({"type": "object"}),
    json!([{"name": "recipient", "type": "string"}, {"name": "amount", "type": "number", "minimum": 0}]), &["recipents"]
)]
fn an_argument_that_neither_side_names_is_an_error(
    #[case] schema: Value,
    #[case] inputs: Value,
    #[case] arguments: &[&str],
) {
    let errors = |allow_unmatched: bool| -> Vec<Finding> {
        let spec = json!({
            "problem": {"statement": "Help with money"}, "tools": [{"name": "send_money", "inputs": inputs}],
            "mcpServer": {"service": {"name": "bank", "port": 8080}},
            "policy": {"allowUnmatched": allow_unmatched, "approvals": [
                {"toolId": "send_money", "when": "amount > 500 || amount < 0"},
                {"toolId": "send_money", "when": "has(args.recipents)"},
                {"toolId": "send_money", "when": "has(args.recipient) && recipient == 'x'"},
            ]},
        });
        let mut found = skill(&serde_json::from_value(spec).unwrap(), [("send_money", &schema)]);
        found.retain(|finding| finding.severity == Severity::Error);
        found
    };
    let found = errors(false);
    let names = |finding: &Finding, name: &&str| finding.message.contains(&format!("argument {name:?}"));
    assert_eq!(found.len(), arguments.len(), "{found:?}");
    assert!(found.iter().zip(arguments).all(|(finding, name)| names(finding, name)), "{found:?}");
    // An argument that a closed schema lacks is a defect of the rule, and not of the server.
    let closed = |finding: &&Finding| finding.message.starts_with("no tool that");
    assert_eq!(errors(true).len(), found.iter().filter(closed).count());
}

#[rstest]
#[case::other_arguments(json!({"type": "object", "properties": {"amount": {"type": "number"}}}), Severity::Error)]
#[case::no_listed_arguments(json!({"type": "object"}), Severity::Error)]
#[case::further_arguments(
    json!({"type": "object", "properties": {"memo": {"type": "string"}}, "additionalProperties": true}), Severity::Error
)]
#[case::a_choice_of_arguments(
    json!({"type": "object", "oneOf": [{"properties": {"memo": {"type": "string"}}}, {"properties": {"id": {"type": "string"}}}]}),
    Severity::Error
)]
#[case::fields_that_nobody_lists(
    json!({"type": "object", "properties": {"payment": {"type": "object"}}}), Severity::Warning
)]
#[case::a_schema_in_parts(json!({"type": "object", "allOf": [{"properties": {"memo": {"type": "string"}}}, {}]}), Severity::Warning)]
fn a_threshold_of_an_argument_that_no_tool_has_is_an_error(#[case] schema: Value, #[case] severity: Severity) {
    let found = |allow_unmatched: bool| {
        let spec = json!({
            "problem": {"statement": "Help with money"}, "mcpServer": {"service": {"name": "bank", "port": 8080}},
            "policy": {"allowUnmatched": allow_unmatched, "guardrails": {"never": ["total > 500"]}},
        });
        let found = skill(&serde_json::from_value(spec).unwrap(), [("send_money", &schema)]);
        found.into_iter().map(|finding| (finding.severity, finding.message, finding.hint)).collect::<Vec<_>>()
    };
    let message =
        "no tool of the MCP server has an argument \"total\": the rule applies to no call without it".to_owned();
    let hint = Some("if a tool has it, declare it in the tool's `inputs` in spec.tools".to_owned());
    assert_eq!(found(false), [(severity, message.clone(), hint.clone())]);
    assert_eq!(found(true), [(Severity::Warning, message, hint)]);
}

#[test]
fn what_a_tool_with_effect_sends_has_a_default_already() {
    let tools = json!([{"name": "send_email", "sends": ["body"]}]);
    let found = findings_about(&json!({"effects": "deny"}), &tools);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        finding.message,
        "has no effect, because send_email is not readOnly: spec.policy.effects applies to every call"
    );
}

#[test]
fn required_inputs_of_a_prefix_deny_the_calls_of_tools_without_them() {
    let tools = json!([{"name": "send_*", "inputs": [{"name": "amount", "type": "number", "required": true}]}]);
    let found = findings_about(&json!({}), &tools);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.message, "send_email has no argument \"amount\", so every call of it is denied");
}

#[rstest]
#[case::of_some_tools(
    "send_*", json!({"name": "amount", "type": "number", "minimum": 0, "maximum": 5}), Some(Severity::Warning),
    "send_email has no argument \"amount\", so its calls are not limited"
)]
#[case::of_no_tool(
    "send_*", json!({"name": "amuont", "type": "number", "maximum": 5}), Some(Severity::Error),
    "no tool that \"send_*\" matches has an argument \"amuont\""
)]
#[case::of_no_tool_without_limits(
    "send_*", json!({"name": "amuont", "type": "number"}), Some(Severity::Warning),
    "no tool that \"send_*\" matches has an argument \"amuont\""
)]
#[case::not_of_the_tool_without_limits(
    "send_money", json!({"name": "amuont", "type": "number"}), Some(Severity::Warning),
    "no tool that \"send_money\" matches has an argument \"amuont\""
)]
#[case::of_some_tools_without_limits("send_*", json!({"name": "amount", "type": "number"}), None, "")]
#[case::of_some_of_all_tools("*", json!({"name": "amount", "type": "number", "minimum": 0, "maximum": 5}), None, "")]
fn an_input_that_a_tool_lacks_is_a_finding(
    #[case] tool: &str,
    #[case] input: Value,
    #[case] severity: Option<Severity>,
    #[case] message: &str,
) {
    let found = findings_about(&json!({}), &json!([{"name": tool, "inputs": [input]}]));
    let of_name = found.iter().map(|finding| (finding.path.as_str(), finding.severity, finding.message.as_str()));
    let expected = severity.map(|severity| ("spec.tools[0].inputs[0].name", severity, message));
    assert_eq!(of_name.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn limited_inputs_of_no_tool_protect_nothing() {
    let tools = json!([{"name": "send_moneys", "inputs": [{"name": "amount", "type": "number", "maximum": 5}]}]);
    let found = findings_about(&json!({}), &tools);
    assert_eq!(found[0].message, "no tool of the MCP server matches \"send_moneys\": the rule protects nothing");
}

#[rstest]
#[case::an_account("DE[0-9]{20}")]
#[case::an_address("[^@ ]+@own\\.com")]
#[case::words("\\w{1,64}")]
#[case::a_name("[A-Z][a-z]{0,31}( [A-Z][a-z]{0,31})?")]
fn common_patterns_are_within_the_bounds(#[case] pattern: &str) {
    let input = json!({"name": "body", "type": "string", "pattern": pattern});
    assert_eq!(findings_about(&json!({}), &json!([{"name": "send_email", "inputs": [input]}])), []);
}

#[test]
fn a_minimum_of_the_skill_is_a_lower_limit() {
    let tools = json!([{"name": "send_money", "inputs": [{"name": "amount", "type": "number", "minimum": 0}]}]);
    let policy = json!({"approvals": [{"toolId": "send_money", "when": "amount > 5"}]});
    assert_eq!(findings_about(&policy, &tools), []);
}

#[rstest]
#[case::a_misspelt_tool(
    json!({"tool": "send_moneys", "count": true, "per": "job", "max": 1}), "tool",
    "no tool of the MCP server matches \"send_moneys\": the rule protects nothing", Severity::Error
)]
#[case::a_misspelt_argument(
    json!({"tool": "send_money", "sum": "amuont", "per": "job", "max": 1}), "sum",
    "no tool that \"send_money\" matches has an argument \"amuont\"", Severity::Error
)]
#[case::no_number(
    json!({"tool": "send_email", "sum": "body", "per": "job", "max": 1}), "sum",
    "send_email has body as a string, so every call is beyond the limit", Severity::Error
)]
#[case::not_an_argument_of_every_tool(
    json!({"tool": "send_*", "sum": "amount", "per": "job", "max": 1}), "sum",
    "send_email has no argument \"amount\", so every call of it is beyond the limit", Severity::Warning
)]
#[case::a_tool_of_the_conversation(
    json!({"tool": "ask_user", "count": true, "per": "job", "max": 1}), "tool", "limits do not apply to ask_user", Severity::Error
)]
#[case::a_long_window(
    json!({"tool": "send_money", "count": true, "per": "skill", "window": "745h", "max": 1}), "window", "must be at most 744h", Severity::Error
)]
#[case::too_many_decimals(
    json!({"tool": "send_money", "count": true, "per": "job", "max": 1e-19}), "max",
    "must be a number of at least 0, with at most 18 decimals", Severity::Error
)]
fn a_limit_that_does_not_fit_its_tools_is_a_finding(
    #[case] limit: Value,
    #[case] field: &str,
    #[case] message: &str,
    #[case] severity: Severity,
) {
    let found = findings(&json!({"limits": [limit]}));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let path = format!("spec.policy.limits[0].{field}");
    assert_eq!((finding.severity, &finding.path, finding.message.as_str()), (severity, &path, message));
}

#[rstest]
#[case::a_sum(json!({"tool": "send_money", "sum": "amount", "per": "job", "max": 1000.5}))]
#[case::the_longest_window(json!({"tool": "send_money", "count": true, "per": "skill", "window": "744h", "max": 1}))]
#[case::a_count_of_several(json!({"tool": "send_*", "count": true, "per": "job", "max": 3}))]
#[case::a_count_of_everything(json!({"tool": "*", "count": true, "per": "job", "max": 30}))]
fn a_limit_that_fits_its_tools_is_no_finding(#[case] limit: Value) {
    assert_eq!(findings(&json!({"limits": [limit]})), []);
}
