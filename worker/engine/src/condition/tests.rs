//! The results, errors and limits of conditions.

use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn arguments() -> Value {
    json!({
        "order_id": "A-17", "amount": 600, "rate": 1.5, "large": 9_007_199_254_740_993_i64,
        "huge": u64::MAX, "a-b": "dashed", "type": "refund", "none": null, "urgent": true,
        "items": [{"sku": "x", "quantity": 2, "price": 250.5}, {"sku": "y", "quantity": 1, "price": 99}],
        "tags": ["broken", "late"], "address": {"country": "DE", "lines": ["Hauptstr. 1"]},
    })
}

fn evaluate(text: &str) -> Result<bool, Error> {
    Condition::compile(text).unwrap_or_else(|fault| panic!("{text}: {fault}")).evaluate(&arguments(), &[])
}

#[rstest]
#[case::threshold_exceeded("amount > 500", true)]
#[case::threshold_not_reached("amount > 600", false)]
#[case::integers_become_int("amount * 2 == 1200", true)]
#[case::integers_compare_with_doubles("amount >= 599.99 && rate < 2", true)]
#[case::large_integers_stay_exact("large == 9007199254740992.0", false)]
#[case::unsigned_where_it_does_not_fit("huge > 9223372036854775807", true)]
#[case::args_binds_all("args.amount > 500 && size(args) == 12", true)]
#[case::has_of_args("has(args.amount) && !has(args.coupon)", true)]
#[case::names_with_a_dash("args['a-b'] == 'dashed'", true)]
#[case::names_that_cel_uses("args.type == 'refund'", true)]
#[case::null_counts_as_absent("!has(args.none) && none == null", true)]
#[case::guarded_optional("has(args.coupon) && coupon == 'X'", false)]
#[case::nested("address.country == 'DE' && address.lines[0].startsWith('Haupt')", true)]
#[case::membership("'late' in tags && !('lost' in tags)", true)]
#[case::list_of_choices("address.country in ['DE', 'AT']", true)]
#[case::field_in_an_object("'country' in address", true)]
#[case::exists("items.exists(i, double(i.price) * double(i.quantity) > 500.0)", true)]
#[case::all("items.all(i, i.quantity >= 2)", false)]
#[case::exactly_one("items.exists_one(i, i.sku == 'y')", true)]
#[case::filter("size(items.filter(i, i.quantity > 1)) == 1", true)]
#[case::map("items.map(i, i.sku) == ['x', 'y']", true)]
#[case::over_the_names_of_an_object("address.map(name, name) == ['country', 'lines']", true)]
#[case::one_macro_after_another("items.filter(i, i.quantity > 1).exists(i, i.sku == 'x')", true)]
#[case::an_item_may_shadow_an_argument("tags.exists(amount, amount == 'late') && amount == 600", true)]
#[case::choice("urgent ? amount > 1000 : amount > 100", false)]
#[case::or_makes_up_for_an_error("amount / 0 == 1 || urgent", true)]
#[case::and_makes_up_for_an_error("amount / 0 == 1 && false", false)]
#[case::exists_makes_up_for_an_error("items.exists(i, i.price < 100 || i.nothing)", true)]
#[case::texts("order_id.startsWith('A') && order_id.endsWith('17') && order_id.contains('-')", true)]
#[case::text_order("'a' < 'b' && string(amount) + '!' == '600!'", true)]
#[case::conversions("int('7') == 7 && double(amount) * 1.5 == 900.0 && int(rate) == 1", true)]
#[case::kinds_differ("order_id == 17", false)]
#[case::size_counts_characters("size('πέντε') == 5 && tags.size() == 2", true)]
#[case::remainder("amount % 7 == 5 && -amount < 0", true)]
fn a_condition_is_evaluated(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(evaluate(text), Ok(expected));
}

#[rstest]
#[case::a_number("amount", "the result is an int, not true or false")]
#[case::a_text("order_id", "the result is a string, not true or false")]
#[case::missing("coupon == 'X'", "the call has no argument \"coupon\"")]
#[case::missing_where_or_could_do_without("coupon == 'X' || urgent", "the call has no argument \"coupon\"")]
#[case::missing_in_args("args.coupon == 'X'", "the call has no argument \"coupon\"")]
#[case::missing_further_in("address.zip == 'X'", "there is no field \"zip\"")]
#[case::division_by_zero("amount / 0 > 1", "/ has no result: division by zero, or out of range")]
#[case::overflow("amount * 9223372036854775807 > 1", "* has no result: division by zero, or out of range")]
#[case::mixed_kinds(
    "amount * 1.5 > 1.0",
    "an int * a double is not defined: make them of one kind, as in double(amount) * 1.5"
)]
#[case::remainder_of_doubles("double(amount) % 2.0 == 1.0", "a double % a double is not defined")]
#[case::not_comparable("order_id > 500", "a string > an int cannot be compared")]
#[case::field_of_a_number("amount.value == 1", "an int has no field \"value\"")]
#[case::beyond_a_list("tags[2] == 'x'", "a list has no item at that index")]
#[case::macro_over_a_text("order_id.all(c, c == 'A')", "all() goes over a list, not a string")]
#[case::int_of_a_word("int(order_id) > 1", "int() cannot convert this string")]
fn a_condition_without_a_result_is_an_error(#[case] text: &str, #[case] sentence: &str) {
    assert_eq!(evaluate(text).unwrap_err().to_string(), sentence);
}

#[test]
fn the_error_of_a_missing_argument_says_that_it_is_optional() {
    let condition = Condition::compile("coupon == 'X'").unwrap();
    let fault = condition.evaluate(&arguments(), &["note".into(), "coupon".into()]).unwrap_err();
    assert_eq!(fault, bloomery_cel::Error::Missing { name: "coupon".into(), optional: true }.into());
    assert!(fault.to_string().ends_with("guard it with has()"), "{fault}");
}

#[rstest]
#[case::syntax("amount >", "not valid CEL")]
#[case::two_expressions("amount > 1 amount", "not valid CEL")]
#[case::reserved_word("return > 1", "not valid CEL")]
#[case::unknown_function("amount.exceeds(5)", "there is no function exceeds()")]
#[case::computed_patterns("order_id.matches(note)", "must be a string in quotes")]
#[case::no_clock("timestamp('2026-01-01T00:00:00Z') < now", "there is no function timestamp()")]
#[case::names_that_shadow("type == 'refund'", "write args.type")]
#[case::item_that_shadows_args("tags.all(args, args == 'x')", "choose another name")]
#[case::item_that_is_no_name("tags.all(1, true)", "takes a name for the item")]
#[case::has_of_a_name("has(amount)", "has() asks for a field")]
#[case::map_literal("{'a': 1} == args", "cannot be written in a condition")]
#[case::message("Order{id: 1} == args", "cannot be written in a condition")]
#[case::bytes("b'a' == b'a'", "bytes cannot be used")]
#[case::absolute_name(".amount > 1", "begins with a dot")]
#[case::too_deep("((((((((((((((((((((((((((1))))))))))))))))))))))))))", "deeper than 24")]
fn a_condition_that_never_has_a_result_does_not_compile(#[case] text: &str, #[case] sentence: &str) {
    let fault = Condition::compile(text).unwrap_err().to_string();
    assert!(fault.contains(sentence), "{fault}");
}

#[rstest]
#[case::long_list(json!({"xs": vec![0; MAX_ITEMS + 1]}), "longer than the 1000")]
#[case::large(json!({"note": "x".repeat(MAX_SIZE_BYTES)}), "larger than the 65536 bytes")]
#[case::large_by_its_names(json!({"x".repeat(MAX_SIZE_BYTES): 1}), "larger than the 65536 bytes")]
#[case::no_object(json!([1]), "not an object")]
fn arguments_beyond_the_limits_are_an_error(#[case] arguments: Value, #[case] sentence: &str) {
    let fault = Condition::compile("true").unwrap().evaluate(&arguments, &[]).unwrap_err().to_string();
    assert!(fault.contains(sentence), "{fault}");
}

#[test]
fn arguments_nested_too_deep_are_an_error() {
    let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let condition = Condition::compile("has(args.a)").unwrap();
    assert_eq!(condition.evaluate(&deep(32), &[]), Ok(true));
    assert!(matches!(condition.evaluate(&deep(33), &[]), Err(Error::Arguments(_))));
}

#[test]
fn a_condition_on_a_thousand_items_is_within_the_limits() {
    let items: Vec<Value> = (0..MAX_ITEMS).map(|n| json!({"n": n, "text": "x".repeat(20)})).collect();
    let condition = Condition::compile("items.all(i, i.n >= 0 && i.n < 1000 && i.text != 'y')").unwrap();
    assert_eq!(condition.evaluate(&json!({ "items": items }), &[]), Ok(true));
}

#[rstest]
#[case::doubling("[note].map(x, x+x+x+x+x+x+x+x+x).map(x, x+x+x+x+x+x+x+x+x).size() == 1")]
#[case::doubling_again_and_again(&("[note]".to_owned() + &".map(x, x+x)".repeat(10) + ".size() == 1"))]
#[case::lists_of_lists("xs.map(x, xs).map(x, xs) == xs.map(x, xs).map(x, [xs, xs])")]
#[case::copies_of_a_large_text("xs.all(x, note + note + note != 'a')")]
#[case::large_comparisons("xs.all(x, args == args)")]
#[case::nested_macros("xs.all(x, xs.all(y, x == y))")]
#[case::membership_of_the_last("xs.all(x, !(1 in xs))")]
fn a_condition_with_too_much_work_is_an_error(#[case] text: &str) {
    let arguments = json!({"note": "x".repeat(50_000), "xs": vec![0; MAX_ITEMS]});
    let fault = Condition::compile(text).unwrap().evaluate(&arguments, &[]);
    assert_eq!(fault, Err(bloomery_cel::Error::Exhausted.into()));
}

#[test]
fn a_comparison_of_different_types_does_not_walk_the_values() {
    let arguments = json!({"xs": vec![0; MAX_ITEMS], "ys": vec![vec![0; 100]; 60]});
    let condition = Condition::compile("xs.all(x, ys != 1 && ys != [1])").unwrap();
    assert_eq!(condition.evaluate(&arguments, &[]), Ok(true));
}

#[test]
fn conditions_can_cross_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Condition>();
}

/// The deepest conditions that compile must also be evaluated and dropped on a small stack.
#[rstest]
#[case::parentheses("(".repeat(23) + "true" + &")".repeat(23))]
#[case::lists("[".repeat(20) + "1" + &"]".repeat(20) + " == 1")]
#[case::not("!".repeat(24) + "true")]
#[case::sums(vec!["1"; 23].join("+") + " == 23")]
#[case::ternaries("true ? true : ".repeat(22) + "true")]
#[case::many_ands(vec!["amount > 500"; 60].join(" && "))]
fn the_deepest_conditions_compile(#[case] text: String) {
    Condition::compile(&text).unwrap_or_else(|fault| panic!("{fault}")).evaluate(&arguments(), &[]).unwrap();
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = Condition::compile(&text).map(|condition| condition.evaluate(&arguments(), &[]));
    }

    #[test]
    fn no_sequence_of_cel_tokens_panics(words in prop::collection::vec(prop::sample::select(vec![
        "amount", "items", "args", ".", "(", ")", "[", "]", "1", "0", "2.5", "'x'", " && ", " || ", "!", "-", "+", "*",
        "/", "%", " in ", " == ", " < ", "? ", ": ", ",", ".all(x,", ".map(x,", "has(", "size(", "x", "true", "null",
    ]), 0..24)) {
        let _ = Condition::compile(&words.concat()).map(|condition| condition.evaluate(&arguments(), &[]));
    }
}
