//! Compares the lint with the run: what the lint says about a rule is what the gate does.

use super::*;
use crate::fixture::checks::code;
use crate::fixture::staged::status;
use crate::fixture::{Reply, World, asks, good_answer, listed, run};
use crate::lint::skill;
use crate::run::Run;
use crate::tool::ListedTool;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Verdict;

/// What becomes of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// No Job begins.
    Refused,
    /// The gate holds or denies a refund of 600.
    Enforced,
    /// The rule is only text for the model.
    Text,
}

/// Returns the Skill of the fixture with other rules. `declared` are its tools.
fn skill_with(policy: &Value, declared: &Value) -> SkillSpec {
    let mut spec = serde_json::to_value(crate::fixture::skill()).unwrap();
    spec["policy"] = policy.clone();
    spec["tools"] = declared.clone();
    serde_json::from_value(spec).unwrap()
}

/// Returns a workflow whose step must fulfil a condition.
fn expecting(step: &str, condition: &str) -> Value {
    json!({"policy": {"workflows": [{
        "name": "w", "steps": ["verify_identity", "process_refund"], "required": true,
        "expect": [{"step": step, "condition": condition}],
    }]}})
}

/// Returns the tools of the fixture. The first one lists the schema of its results, and `process_refund` has an optional level.
fn tools() -> Vec<ListedTool> {
    let mut tools = listed();
    tools[2].input_schema["properties"]["level"] = json!({"type": "integer", "enum": [1, 2, 3]});
    tools[0].output_schema =
        Some(json!({"type": "object", "properties": {"verified": {"type": "boolean"}, "name": {"type": "string"}}}));
    tools
}

fn by_lint(spec: &SkillSpec) -> Effect {
    let tools = tools();
    let findings = skill(spec, tools.iter().map(ServerTool::from));
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Effect::Refused;
    }
    let is_text = |finding: &Finding| finding.message.contains("only text in the prompt");
    if findings.iter().any(is_text) { Effect::Text } else { Effect::Enforced }
}

fn by_run(spec: SkillSpec) -> Effect {
    let refund = asks(&[("process_refund", json!({"order_id": "A-17", "amount": 600}))]);
    let mut world =
        World::new(Run { skill: spec, ..run() }, vec![refund, good_answer()], |_, _| Reply::Completed("ok"));
    world.listed = tools();
    world.play_out();
    if world.conversation.outcome().is_some() && code(&world) == OutcomeCode::PolicyInvalid {
        assert_eq!((world.asked, world.effects.len()), (0, 0), "the Job ends before the model is asked");
        return Effect::Refused;
    }
    let ruling = status(&world).gates.pre_tool.last.first().unwrap().verdict;
    if ruling == Verdict::Allow { Effect::Text } else { Effect::Enforced }
}

#[rstest]
#[case::never_use(never("Never use process_refund"), Effect::Enforced)]
#[case::a_bare_name(never("process_refund"), Effect::Enforced)]
#[case::a_bare_name_in_quotes(never("`process_refund()`."), Effect::Enforced)]
#[case::a_bare_prefix(never("process_*"), Effect::Enforced)]
#[case::never_use_a_prefix(never("Never use process_*"), Effect::Enforced)]
#[case::emphasis(never("**Never use** _process_refund_."), Effect::Enforced)]
#[case::emphasis_of_prose(never("Never use *slang*"), Effect::Text)]
#[case::emphasis_of_a_misspelt_tool(never("Never call *proces_refund*"), Effect::Refused)]
#[case::every_tool(never("*"), Effect::Enforced)]
#[case::a_star_in_a_sentence(never("Never run *"), Effect::Refused)]
#[case::any_tool(never("Never call any tool"), Effect::Refused)]
#[case::any_tools(never("Never use any tools"), Effect::Refused)]
#[case::an_amount_and_a_tool(never("Never pay more than 500 with process_refund"), Effect::Refused)]
#[case::a_limit_and_a_tool(never("Never go above the limit with process_refund"), Effect::Refused)]
#[case::an_amount_that_a_word_forbids(never("Never note over 500"), Effect::Refused)]
#[case::a_tool_that_is_mentioned(
    never("Never answer about orders you did not look up with verify_identity"),
    Effect::Text
)]
#[case::a_promise_before_a_tool(
    never("Never promise a refund over 500 before process_refund has succeeded"),
    Effect::Text
)]
#[case::approval(never("process_refund requires approval"), Effect::Enforced)]
#[case::approval_of_a_prefix(never("process_* requires approval"), Effect::Enforced)]
#[case::an_exception(never("Never call process_refund without approval"), Effect::Enforced)]
#[case::a_threshold(never("amount > 500"), Effect::Enforced)]
#[case::a_threshold_that_names_a_tool(never("process_refund amount > 500"), Effect::Refused)]
#[case::a_threshold_of_an_unknown_field(never("amuont > 500"), Effect::Refused)]
#[case::a_threshold_of_a_field_that_is_like_no_other(never("total > 500"), Effect::Refused)]
#[case::an_exception_without_approval(never("Never use process_refund unless asked"), Effect::Refused)]
#[case::another_verb(never("Never call process_refund"), Effect::Enforced)]
#[case::another_verb_and_a_prefix(never("Never run process_*"), Effect::Enforced)]
#[case::another_verb_and_no_tool(never("Never call proces_refund"), Effect::Refused)]
#[case::another_verb_and_no_prefix(never("Never call send_*"), Effect::Refused)]
#[case::another_verb_and_another_style(never("Never call ProcessRefund"), Effect::Refused)]
#[case::another_style_alone(never("processrefund"), Effect::Refused)]
#[case::the_tool(never("Never use the process_refund tool"), Effect::Enforced)]
#[case::a_tool_after_its_kind(never("Never use tool process_refund"), Effect::Enforced)]
#[case::the_tool_after_its_kind(never("Never use the tool process_refund"), Effect::Enforced)]
#[case::never_ever(never("Never ever use process_refund"), Effect::Enforced)]
#[case::never_allow(never("Never allow process_refund"), Effect::Enforced)]
#[case::the_tools_of_a_prefix(never("Never use the process_* tools"), Effect::Enforced)]
#[case::do_not(never("Do not use process_refund"), Effect::Enforced)]
#[case::the_tools_of_no_prefix(never("Never use the trade_* tools"), Effect::Refused)]
#[case::another_verb_in_a_sentence(never("Never access process_refund"), Effect::Refused)]
#[case::the_use_of_a_tool(never("Please never allow the use of process_refund"), Effect::Enforced)]
#[case::to_avoid(never("Avoid process_refund"), Effect::Enforced)]
#[case::to_avoid_no_tool(never("Avoid proces_refund"), Effect::Refused)]
#[case::to_avoid_on_some_days(never("Avoid process_refund on Fridays"), Effect::Text)]
#[case::politely(never("Please do not use process_refund"), Effect::Enforced)]
#[case::must_not(never("You must not call process_refund"), Effect::Enforced)]
#[case::is_forbidden(never("process_refund is forbidden"), Effect::Enforced)]
#[case::prose_about_a_style(always("Always use snake_case"), Effect::Text)]
#[case::a_name_in_a_sentence(never("Never use process_refund on Fridays"), Effect::Refused)]
#[case::no_tool_in_a_sentence(never("If in doubt, do not call proces_refund"), Effect::Refused)]
#[case::an_expression(never("!fromUser(order_id)"), Effect::Refused)]
#[case::an_expression_in_a_sentence(never("Never refund if amount == 5 && !fromUser(order_id)"), Effect::Refused)]
#[case::a_comparison_in_words(never("Never refund an amount over 500"), Effect::Refused)]
#[case::must_not_exceed(always("amount must not exceed 500"), Effect::Refused)]
#[case::must_be_at_most(always("amount must be at most 500"), Effect::Refused)]
#[case::must_be_below(always("amount must be below 500"), Effect::Refused)]
#[case::should_be_less(always("amount should be less than 500"), Effect::Refused)]
#[case::no_more_than(always("amount no more than 500"), Effect::Refused)]
#[case::is_at_most(always("amount is at most 500"), Effect::Refused)]
#[case::a_currency(always("The amount must not exceed 500 EUR"), Effect::Refused)]
#[case::in_the_plural(never("amounts over 500"), Effect::Refused)]
#[case::bigger(never("amount bigger than 500"), Effect::Refused)]
#[case::a_sign_turned_round(never("amount => 500"), Effect::Refused)]
#[case::approved(always("process_refund must be approved"), Effect::Refused)]
#[case::require_approval_for(always("Require approval for process_refund"), Effect::Refused)]
#[case::human_approval(always("process_refund requires human approval"), Effect::Refused)]
#[case::above_requires_approval(always("amount above 500 requires approval"), Effect::Refused)]
#[case::prose_with_a_sign(never("Never write answers > 100 words"), Effect::Text)]
#[case::a_unit_after_the_number(never("Never refund an amount over 5 orders"), Effect::Text)]
#[case::a_tool_to_use_instead(never("Never guess: use process_refund instead"), Effect::Text)]
#[case::a_purpose_of_a_tool(never("Never use process_refund for links in mails"), Effect::Text)]
#[case::a_range_in_words(always("amount between 1 and 500"), Effect::Refused)]
#[case::a_name_with_a_blank(never("Never call process refund"), Effect::Refused)]
#[case::a_name_with_a_blank_of_a_tool(never("Never use the process refund tool"), Effect::Refused)]
#[case::an_order_of_tools(never("Never use process_refund before verify_identity"), Effect::Text)]
#[case::an_identifier(always("Always use snake_case in replies"), Effect::Text)]
#[case::commands(never("Never chain commands with && in replies"), Effect::Text)]
#[case::guidance_that_names_a_tool(always("Always call verify_identity first"), Effect::Text)]
#[case::no_plain_number(never("amount > 1,000"), Effect::Refused)]
#[case::prose_about_a_word(never("Never use slang"), Effect::Text)]
#[case::a_word_that_is_a_tool(never("Never note"), Effect::Text)]
#[case::prose_about_a_product(never("Never use JavaScript"), Effect::Text)]
#[case::never_use_no_tool(never("Never use proces_refund"), Effect::Refused)]
#[case::a_bare_name_of_no_tool(never("proces_refund"), Effect::Refused)]
#[case::approval_of_no_tool(never("processRefunds requires approval"), Effect::Refused)]
#[case::a_prefix_of_no_tool(never("Never use send_*"), Effect::Refused)]
#[case::blocked(json!({"policy": {"tools": {"blocked": ["process_refund"]}}}), Effect::Enforced)]
#[case::blocked_by_prefix(json!({"policy": {"tools": {"blocked": ["proc*"]}}}), Effect::Enforced)]
#[case::blocked_no_tool(json!({"policy": {"tools": {"blocked": ["proces_refund"]}}}), Effect::Refused)]
#[case::blocked_by_a_misspelt_prefix(json!({"policy": {"tools": {"blocked": ["delte_*"]}}}), Effect::Refused)]
#[case::held(json!({"policy": {"approvals": [{"toolId": "process_refund"}]}}), Effect::Enforced)]
#[case::held_by_prefix(json!({"policy": {"approvals": [{"toolId": "process_*", "when": "amount > 500"}]}}), Effect::Enforced)]
#[case::denied(json!({"policy": {"approvals": [{"toolId": "*", "when": "amount > 500", "action": "deny"}]}}), Effect::Enforced)]
#[case::held_no_tool(json!({"policy": {"approvals": [{"toolId": "proces_refund"}]}}), Effect::Refused)]
#[case::an_approver_of_a_tool(
    json!({"policy": {"workflows": [{
        "name": "w", "steps": ["process_refund"], "required": true, "expect": [{"step": "process_refund", "approver": "boss"}],
    }]}}),
    Effect::Refused
)]
#[case::an_unknown_argument(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "has(args.amuont)"}]}}), Effect::Refused
)]
#[case::another_type(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "amount == '600'"}]}}), Effect::Refused
)]
#[case::comparisons_that_exclude_each_other(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "amount < 0 && amount > 500"}]}}), Effect::Refused
)]
#[case::a_required_argument_that_is_missing(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "!has(args.order_id)"}]}}), Effect::Refused
)]
#[case::a_list_without_a_possible_number(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "!has(args.level) || level in [4, 5]"}]}}), Effect::Refused
)]
#[case::a_list_with_a_possible_number(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "!has(args.level) || level in [3, 4]"}]}}), Effect::Enforced
)]
#[case::a_size_below_zero(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "size(order_id) < 0"}]}}), Effect::Refused
)]
#[case::a_part_of_another_domain(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "!domain(order_id).contains('own.com')"}]}}), Effect::Refused
)]
#[case::a_class_of_capitals_in_lower_case(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "order_id.lowerAscii().matches('^[A-Z]+-')"}]}}), Effect::Refused
)]
#[case::a_name_in_the_arguments(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "'amuont' in args"}]}}), Effect::Refused
)]
#[case::a_name_in_the_arguments_that_exists(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "'amount' in args"}]}}), Effect::Enforced
)]
#[case::a_field_of_earlier_calls(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "!calls('note').exists(c, has(c.ordr_id))"}]}}),
    Effect::Refused
)]
#[case::a_field_of_a_result(
    json!({"policy": {"approvals": [
        {"toolId": "process_refund", "when": "!results('verify_identity').exists(r, has(r.verifed) && r.verifed)"},
    ]}}),
    Effect::Refused
)]
#[case::a_field_of_a_result_that_exists(
    json!({"policy": {"approvals": [
        {"toolId": "process_refund", "when": "!results('verify_identity').exists(r, has(r.verified) && r.verified)"},
    ]}}),
    Effect::Enforced
)]
#[case::another_type_of_a_result(
    json!({"policy": {"approvals": [
        {"toolId": "process_refund", "when": "!results('verify_identity').exists(r, r.verified == 'true')"},
    ]}}),
    Effect::Refused
)]
#[case::a_field_of_the_result_of_a_step(
    expecting("verify_identity", "!has(result.verifed) || result.verifed"),
    Effect::Refused
)]
#[case::a_field_of_the_result_of_an_earlier_step(
    expecting("process_refund", "steps.verify_identity.result.verifed == true"),
    Effect::Refused
)]
#[case::a_field_of_the_result_of_a_step_that_exists(
    expecting("verify_identity", "result.verified == true"),
    Effect::Enforced
)]
#[case::a_host_in_capitals(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "host(order_id) == 'Bit.ly'"}]}}), Effect::Refused
)]
#[case::a_domain_with_an_at_sign(
    json!({"policy": {"approvals": [{"toolId": "process_refund", "when": "domain(order_id) == '@evil.com'"}]}}), Effect::Refused
)]
#[case::a_list_of_hosts_in_capitals(
    json!({"policy": {
        "lists": {"hosts": ["own.com", "Bit.ly"]}, "approvals": [{"toolId": "process_refund", "when": "host(order_id) in lists.hosts"}],
    }}),
    Effect::Refused
)]
#[case::an_empty_list(
    json!({"policy": {"lists": {"ids": []}, "approvals": [{"toolId": "process_refund", "when": "order_id in lists.ids"}]}}),
    Effect::Refused
)]
#[case::a_list_of_other_texts(
    json!({"policy": {
        "lists": {"ids": ["Bit.ly", "A-17"]}, "approvals": [{"toolId": "process_refund", "when": "order_id in lists.ids"}],
    }}),
    Effect::Enforced
)]
#[case::a_default_beside_a_limit(
    json!({"policy": {"effects": "deny", "limits": [{"tool": "*", "count": true, "per": "job", "max": 9}]}}), Effect::Enforced
)]
#[case::a_default_beside_a_rule_for_every_tool(
    json!({"policy": {"effects": "deny", "approvals": [{"toolId": "*", "when": "has(args.amount) && amount > 900"}]}}), Effect::Enforced
)]
#[case::a_default_beside_a_rule_that_denies(
    json!({"policy": {"effects": "require_approval", "approvals": [
        {"toolId": "process_refund", "when": "amount > 900 || amount < 0", "action": "deny"},
    ]}}),
    Effect::Enforced
)]
#[case::a_default_beside_a_guardrail_for_a_prefix(
    json!({"policy": {"effects": "deny", "guardrails": {"always": ["proc* requires approval"]}}}), Effect::Enforced
)]
#[case::inputs_of_a_prefix_and_of_the_tool(
    json!({"tools": [
        {"name": "process_*", "inputs": [{"name": "amount", "type": "number", "minimum": 0, "maximum": 500}]},
        {"name": "process_refund", "inputs": [{"name": "order_id", "type": "string"}]},
    ]}),
    Effect::Enforced
)]
#[case::a_step_that_is_no_tool(
    json!({"policy": {"workflows": [{"name": "w", "steps": ["verify_identty", "process_refund"], "required": true}]}}),
    Effect::Refused
)]
#[case::a_step_that_is_a_prefix(
    json!({"policy": {"workflows": [{"name": "w", "steps": ["verify_*", "process_refund"], "required": true}]}}),
    Effect::Enforced
)]
#[case::a_policy_of_every_tool(
    json!({"tools": [{"name": "*", "policy": {"allowed": "never"}}]}), Effect::Enforced
)]
#[case::a_policy_of_a_prefix(
    json!({"tools": [{"name": "proc*", "policy": {"requiresApproval": "always"}}, {"name": "process_refund"}]}), Effect::Enforced
)]
#[case::a_policy_of_no_tool(json!({"tools": [{"name": "proces_refund", "policy": {"allowed": "never"}}]}), Effect::Refused)]
#[case::deliberately_no_tool(
    json!({"policy": {"approvals": [{"toolId": "proces_refund"}, {"toolId": "process_refund"}], "allowUnmatched": true}}),
    Effect::Enforced
)]
fn the_lint_and_the_run_agree(#[case] changed: Value, #[case] expected: Effect) {
    let policy = changed.get("policy").cloned().unwrap_or_else(|| json!({}));
    let declared = changed.get("tools").cloned();
    // What the Skill declares must not matter where the server's tools are known.
    let declarations =
        declared.map_or_else(|| vec![json!([]), json!([{"name": "verify_identity"}])], |tools| vec![tools]);
    for declared in declarations {
        let spec = skill_with(&policy, &declared);
        assert_eq!((by_lint(&spec), by_run(spec)), (expected, expected), "{policy} {declared}");
    }
}
