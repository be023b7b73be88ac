//! Sentences about tools whose names are plain words.

use super::*;

/// Returns the findings about a Skill with a sentence under `never`. Its server has tools whose names are plain words.
fn findings(rule: &str) -> Vec<Finding> {
    let refund =
        json!({"type": "object", "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}}});
    let order = json!({"type": "object", "properties": {"order_id": {"type": "string"}}});
    let search = json!({"type": "object", "properties": {
        "query": {"type": "string"}, "offset": {"type": "integer"}, "count": {"type": "integer"},
    }});
    let spec = json!({
        "problem": {"statement": "Help with orders"}, "mcpServer": {"service": {"name": "orders", "port": 8080}},
        "policy": {"guardrails": {"never": [rule]}},
    });
    let listed = [("refund", &refund), ("issue_refund", &refund), ("get_order", &order), ("search", &search)];
    skill(&serde_json::from_value(spec).unwrap(), listed)
}

/// Returns the only finding about a Skill with a sentence under `never`.
fn only_finding(rule: &str) -> Finding {
    let found = findings(rule);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    finding.clone()
}

#[rstest]
#[case::an_amount("Never refund over 500", "{toolId: refund, when: \"amount > 500\", action: deny}")]
#[case::a_currency("Never refund more than $500.", "{toolId: refund, when: \"amount > 500\", action: deny}")]
#[case::a_word_before_the_amount(
    "Do not refund customers over 500 EUR",
    "{toolId: refund, when: \"amount > 500\", action: deny}"
)]
#[case::a_sign("Never refund purchases > 500", "{toolId: refund, when: \"amount > 500\", action: deny}")]
#[case::no_plain_number("Never refund over 10k", "{toolId: refund, when: \"amount > <number>\", action: deny}")]
#[case::a_limit("Never refund above the limit", "{toolId: refund, when: \"amount > <number>\", action: deny}")]
#[case::which_argument("Never search over 500", "{toolId: search, when: \"<argument> > 500\", action: deny}")]
#[case::a_number_of_calls("Never search more than 3 times", "{tool: search, count: true, per: job, max: 3}")]
#[case::with_a_tool(
    "Never pay more than 500 with issue_refund",
    "{toolId: issue_refund, when: \"amount > 500\", action: deny}"
)]
#[case::an_argument("Never refund an amount over 500", "{toolId: refund, when: \"amount > 500\", action: deny}")]
#[case::a_requirement(
    "The refund amount must not exceed 500",
    "{toolId: refund, when: \"!(amount <= 500)\", action: deny}"
)]
#[case::an_approval(
    "Each refund amount above 500 requires approval",
    "{toolId: refund, when: \"amount > 500\", action: require_approval}"
)]
#[case::a_range("Never refund between 1 and 500 EUR", "{toolId: refund, when: \"amount <= 500\", action: deny}")]
#[case::a_name_with_a_blank("Never call issue refund", "did you mean \"issue_refund\"?")]
#[case::a_tool_in_the_place_of_its_argument("Never refund > 500", "write toolId and when in spec.policy.approvals")]
#[case::any_tool("Never call any tool", "write \"*\" as the whole rule under never")]
fn a_limit_that_is_not_enforced_is_an_error_with_the_form_to_write(#[case] rule: &str, #[case] form: &str) {
    let finding = only_finding(rule);
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Error, "spec.policy.guardrails.never[0]"));
    assert!(finding.hint.as_ref().unwrap().contains(form), "{finding:?}");
}

/// Words that mean tools, and are the name of none, would protect nothing.
#[rstest]
#[case::a_comma("issue_refund,get_order")]
#[case::a_bar("Never call issue_refund|get_order")]
#[case::after_use("Never use issue_refund,get_order")]
#[case::prefixes("issue_*|get_*")]
#[case::braces("{issue_refund,get_order}")]
#[case::a_brace_within("issue_{refund,order}")]
#[case::an_expression("issue_[a-z]+")]
#[case::a_beginning("^issue")]
#[case::held("issue_refund,get_order requires approval")]
#[case::blanks("Never issue refund")]
#[case::blanks_alone("issue refund")]
fn words_that_mean_tools_and_name_none_are_an_error(#[case] rule: &str) {
    let finding = only_finding(rule);
    assert_eq!((finding.severity, finding.path.as_str()), (Severity::Error, "spec.policy.guardrails.never[0]"));
}

#[rstest]
#[case::a_genitive("Never show issue_refund's result to others")]
#[case::words_with_marks("Never promise refunds/credits")]
#[case::short("Never go,stop")]
fn words_of_prose_are_no_error(#[case] rule: &str) {
    let found = findings(rule);
    assert!(found.iter().all(|finding| finding.severity == Severity::Warning), "{found:?}");
}

/// An object is no number, so the form to write has the name of another argument.
#[test]
fn the_form_to_write_does_not_compare_an_object() {
    let schema = json!({"type": "object", "properties": {
        "payment": {"type": "object", "properties": {"id": {"type": "string"}}}, "amount": {"type": "number"},
    }});
    let spec = json!({
        "problem": {"statement": "Help with money"}, "mcpServer": {"service": {"name": "bank", "port": 8080}},
        "policy": {"guardrails": {"never": ["Payments over 500 need approval"]}},
    });
    let found = skill(&serde_json::from_value(spec).unwrap(), [("pay", &schema)]);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert!(finding.hint.as_ref().unwrap().contains("\"Never amount > 500\""), "{finding:?}");
}

#[rstest]
#[case::a_purpose("Never use get_order for links in mails")]
#[case::a_tool_that_is_mentioned("Never answer about orders you did not look up with get_order")]
#[case::an_order("Never promise a refund before issue_refund has succeeded")]
#[case::an_amount_in_an_order("Never refund over 500 before get_order has succeeded")]
fn a_sentence_for_the_model_that_names_a_tool_is_a_warning(#[case] rule: &str) {
    let finding = only_finding(rule);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.message.ends_with("but is not enforced: it is only text in the prompt"), "{finding:?}");
}

#[rstest]
#[case::a_unit("Never search more than 5 pages")]
#[case::another_meaning("Never search over the weekend")]
#[case::a_promise("Never promise refunds over 500")]
#[case::no_amount("Never refund twice")]
#[case::a_name_with_a_blank_in_prose("Never issue refund vouchers")]
#[case::a_name_with_a_blank_in_a_sentence("Never call issue refund before the customer agrees")]
#[case::tools_in_prose("Never call any tool twice")]
fn prose_with_a_word_that_is_a_tool_is_no_finding(#[case] rule: &str) {
    assert_eq!(findings(rule), []);
}
