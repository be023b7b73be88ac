//! The verdicts of compiled guardrails on calls.

use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn guardrails(never: &[&str], always: &[&str]) -> Guardrails {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let refund =
        json!({"type": "object", "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}}});
    let nested = json!({"properties": {"order": {"anyOf": [{"properties": {"amount": {}}}]}}});
    let none = json!({"type": "object"});
    let catalogue = [("process_refund", &refund), ("nested", &nested), ("deleteFile", &none), ("track_order", &none)];
    Guardrails::compile(&owned(never), &owned(always), catalogue)
}

fn verdicts(guardrails: &Guardrails, tool: &str, arguments: &Value) -> Vec<(Verdict, String)> {
    guardrails.violations(tool, arguments).into_iter().map(|finding| (finding.verdict, finding.detail)).collect()
}

#[test]
fn a_denied_tool_is_denied_and_no_other() {
    let guardrails = guardrails(&["Never use deleteFile"], &[]);
    let findings = guardrails.violations("deleteFile", &json!({}));
    let expected = Violation {
        verdict: Verdict::Deny,
        rule: "Never use deleteFile",
        detail: "deleteFile must not be used".into(),
    };
    assert_eq!(findings, [expected]);
    assert_eq!(guardrails.violations("track_order", &json!({})), []);
}

#[test]
fn a_tool_that_requires_approval_is_held() {
    let guardrails = guardrails(&[], &["process_refund requires approval"]);
    let held = (Verdict::Hold, "process_refund needs approval".to_owned());
    assert_eq!(verdicts(&guardrails, "process_refund", &json!({})), [held]);
}

#[rstest]
#[case::below(json!({"amount": 499}), None)]
#[case::at_the_threshold(json!({"amount": 500}), None)]
#[case::above(json!({"amount": 500.01}), Some("amount is 500.01"))]
#[case::at_any_depth(json!({"amount": 1, "orders": [{"x": [{"amount": 501}]}]}), Some("amount is 501"))]
#[case::as_a_text(json!({"amount": "501"}), Some("amount is not a number"))]
#[case::as_null(json!({"amount": null}), Some("amount is not a number"))]
#[case::as_an_object(json!({"amount": {"value": 1}}), Some("amount is not a number"))]
#[case::missing_though_declared(json!({"order_id": "A-17"}), Some("the tool declares amount, and the call does not have it"))]
fn a_call_in_the_forbidden_range_of_a_never_rule_is_denied(#[case] arguments: Value, #[case] detail: Option<&str>) {
    let guardrails = guardrails(&["amount > 500"], &[]);
    let expected: Vec<_> = detail.into_iter().map(|detail| (Verdict::Deny, detail.to_owned())).collect();
    assert_eq!(verdicts(&guardrails, "process_refund", &arguments), expected);
}

#[rstest]
#[case::within(json!({"amount": 500}), None)]
#[case::outside(json!({"amount": 501}), Some("amount is 501"))]
#[case::missing_though_declared(json!({}), Some("the tool declares amount, and the call does not have it"))]
fn a_call_outside_the_required_range_of_an_always_rule_is_denied(
    #[case] arguments: Value,
    #[case] detail: Option<&str>,
) {
    let guardrails = guardrails(&[], &["amount <= 500"]);
    let expected: Vec<_> = detail.into_iter().map(|detail| (Verdict::Deny, detail.to_owned())).collect();
    assert_eq!(verdicts(&guardrails, "process_refund", &arguments), expected);
}

/// `is_true` says whether the comparison with 500 is true for 499, 500 and 501.
#[rstest]
#[case::more_than(">", [false, false, true])]
#[case::less_than("<", [true, false, false])]
#[case::at_least(">=", [false, true, true])]
#[case::at_most("<=", [true, true, false])]
fn a_comparison_is_forbidden_under_never_and_required_under_always(#[case] operator: &str, #[case] is_true: [bool; 3]) {
    let rule = format!("amount {operator} 500");
    let broken = |guardrails: &Guardrails| {
        [499, 500, 501].map(|amount| !guardrails.violations("process_refund", &json!({"amount": amount})).is_empty())
    };
    assert_eq!(broken(&guardrails(&[&rule], &[])), is_true, "under never it is the forbidden range");
    assert_eq!(broken(&guardrails(&[], &[&rule])), is_true.map(|truth| !truth), "under always the required one");
}

#[rstest]
#[case::true_under_never(&["amount > 500 needs approval"], &[])]
#[case::true_under_always(&[], &["amount > 500 needs approval"])]
fn a_threshold_that_needs_approval_holds_when_it_is_true(#[case] never: &[&str], #[case] always: &[&str]) {
    let guardrails = guardrails(never, always);
    assert_eq!(
        verdicts(&guardrails, "process_refund", &json!({"amount": 600})),
        [(Verdict::Hold, "amount is 600".into())]
    );
    assert_eq!(verdicts(&guardrails, "process_refund", &json!({"amount": 400})), []);
    let missing = (Verdict::Hold, "the tool declares amount, and the call does not have it".to_owned());
    assert_eq!(verdicts(&guardrails, "process_refund", &json!({})), [missing]);
}

#[test]
fn a_threshold_concerns_only_calls_that_hold_or_declare_its_field() {
    let guardrails = guardrails(&[], &["amount <= 500"]);
    assert_eq!(verdicts(&guardrails, "track_order", &json!({"order_id": "A-17"})), []);
    assert_eq!(verdicts(&guardrails, "track_order", &json!({"x": {"amount": 600}})).len(), 1);
    assert_eq!(verdicts(&guardrails, "nested", &json!({})).len(), 1);
    assert_eq!(verdicts(&guardrails, "nested", &json!({"order": {"amount": 5}})), []);
}

#[test]
fn every_rule_that_a_call_breaks_is_named_once() {
    let guardrails =
        guardrails(&["amount > 500", "amount > 100 needs approval"], &["process_refund requires approval"]);
    let found =
        guardrails.violations("process_refund", &json!({"amount": 600, "more": [{"amount": 700}, {"amount": 800}]}));
    let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["process_refund requires approval", "amount > 500", "amount > 100 needs approval"]);
}

#[test]
fn large_numbers_are_compared_exactly() {
    let guardrails = guardrails(&["amount > 9007199254740992"], &[]);
    assert_eq!(verdicts(&guardrails, "track_order", &json!({"amount": 9_007_199_254_740_992_i64})), []);
    assert_eq!(verdicts(&guardrails, "track_order", &json!({"amount": 9_007_199_254_740_993_i64})).len(), 1);
    assert_eq!(verdicts(&guardrails, "track_order", &json!({"amount": u64::MAX})).len(), 1);
}

#[test]
fn deep_arguments_are_walked_without_recursion() {
    let deep = (0..100_000).fold(json!({"amount": 501}), |inner, _| Value::Array(vec![inner]));
    let guardrails = guardrails(&["amount > 500"], &[]);
    assert_eq!(verdicts(&guardrails, "track_order", &deep).len(), 1);
    // Dropping a deep value recurses and would overflow the stack.
    std::mem::forget(deep);
}

proptest! {
    #[test]
    fn no_rule_and_no_arguments_panic(rule in ".*", name in ".*", number in any::<f64>()) {
        let guardrails = guardrails(&[&rule, "amount > 5"], &[]);
        let _ = guardrails.violations(&name, &json!({name.clone(): number, "amount": [number]}));
    }

    #[test]
    fn never_and_always_with_the_opposite_range_agree(amount in any::<i64>(), limit in any::<i64>()) {
        let arguments = json!({"amount": amount});
        let never = guardrails(&[&format!("amount > {limit}")], &[]);
        let always = guardrails(&[], &[&format!("amount <= {limit}")]);
        let broken = |guardrails: &Guardrails| !guardrails.violations("track_order", &arguments).is_empty();
        prop_assert_eq!(broken(&never), amount > limit);
        prop_assert_eq!(broken(&always), amount > limit);
    }
}
