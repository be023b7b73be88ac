//! The defects of conditions. A property checks that each reported defect exists for every call.

use super::*;
use crate::condition::{Dialect, Error, of_output};
use bloomery_cel::Error as CelError;
use bloomery_crds::v1alpha1::ToolInput;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

fn declared() -> Signature {
    let inputs: Vec<ToolInput> = serde_json::from_value(json!([
        {"name": "amount", "type": "number"}, {"name": "count", "type": "integer"}, {"name": "name", "type": "string"},
        {"name": "urgent", "type": "boolean"}, {"name": "items", "type": "array"}, {"name": "address", "type": "object"},
    ]))
    .unwrap();
    Signature::declared(&inputs)
}

/// Nothing is known about earlier calls and results.
fn unknown(earlier: Earlier, _tool: &str) -> Shape {
    match earlier {
        Earlier::Calls => Shape::object(Fields::default()),
        Earlier::Results => Shape::of_kinds(Kinds::ANY),
    }
}

fn examine(text: &str, signature: &Signature) -> Examination {
    Condition::compile(text).unwrap().examine(signature, "pay", &unknown, true)
}

fn defects(text: &str) -> Vec<Defect> {
    examine(text, &declared()).defects
}

/// The signature of a tool whose server describes its arguments.
fn listed() -> Signature {
    Signature::listed(
        &[],
        &json!({"type": "object", "properties": {
            "address": {"type": "object", "properties": {"country": {"type": "string"}, "zip": {"type": "integer"}}},
            "recipients": {"type": "array", "items": {"type": "object", "properties": {"email": {"type": "string"}}}},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true},
            "free": {"type": "object"},
        }}),
    )
}

#[rstest]
#[case::arithmetic("amount + 1", "a number is neither true nor false")]
#[case::arithmetic_of_what_is_not_known("x + y", "a number or a string or a list is neither true nor false")]
#[case::a_text("'yes'", "a string is neither true nor false")]
#[case::a_number("500", "a number is neither true nor false")]
#[case::a_list("[amount > 5]", "a list is neither true nor false")]
#[case::null("null", "null is neither true nor false")]
#[case::size("size(x)", "a number is neither true nor false")]
#[case::a_filter("items.filter(i, i > 5)", "a list is neither true nor false")]
#[case::all_arguments("args", "an object is neither true nor false")]
#[case::a_declared_number("args.amount", "a number is neither true nor false")]
#[case::one_end_of_a_choice("urgent ? amount : amount > 5", "a number is neither true nor false")]
#[case::one_side_of_or("urgent || 'x'", "a string is neither true nor false")]
#[case::not_of_a_number("!amount", "a number is neither true nor false")]
#[case::the_body_of_a_macro("items.exists(i, i + 1)", "a number is neither true nor false")]
#[case::number_against_text("amount > 'x'", "a number > a string cannot be compared")]
#[case::text_against_number("500 <= name", "a number <= a string cannot be compared")]
#[case::size_against_text("size(x) > 'a'", "a number > a string cannot be compared")]
#[case::order_of_lists("items < [1]", "a list < a list cannot be compared")]
#[case::order_of_null("x > null", "anything > null cannot be compared")]
#[case::a_field_of_a_text("name.first == 'x'", "a string has no field \"first\"")]
#[case::has_of_a_number("has(amount.value)", "a number has no field \"value\"")]
#[case::a_place_in_a_number("amount[0] == 1", "a number cannot be indexed with a number")]
#[case::in_a_text("'x' in name", "a string cannot be in a string")]
#[case::a_number_in_an_object("5 in address", "a number cannot be in an object")]
#[case::sum_of_two_kinds("amount + name > 5", "a number + a string is not defined")]
#[case::difference_of_texts("name - 'x' == 'y'", "a string - a string is not defined")]
#[case::negative_text("-name > 5", "-(a string) is not defined")]
#[case::size_of_a_number("size(amount) > 5", "size() is not defined for a number")]
#[case::contains_in_a_list(
    "items.contains('x')",
    "contains() is not defined for a list: to check each item, write list.all(it, ...)"
)]
#[case::string_of_a_list(
    "string(items) == 'x'",
    "string() is not defined for a list: to check each item, write list.all(it, ...)"
)]
#[case::a_macro_over_a_text("name.all(c, c == 'x')", "all() goes over a list, not a string")]
#[case::the_source_of_a_list(
    "fromUser(items)",
    "fromUser() is not defined for a list: to check each item, write list.all(it, ...)"
)]
#[case::the_source_of_a_bool("fromTool(urgent, 'x')", "fromTool() is not defined for a bool")]
#[case::the_host_of_a_number("host(amount) == 'x'", "host() is not defined for a number")]
#[case::a_pattern_for_a_number("amount.matches('5')", "matches() is not defined for a number")]
#[case::calls_as_a_bool("calls('x')", "a list is neither true nor false")]
fn a_part_that_never_has_a_value_is_reported_once(#[case] text: &str, #[case] sentence: &str) {
    assert_eq!(defects(text), [Defect::Undecidable(sentence.into())]);
}

#[rstest]
#[case::equal("amount == '500'", "a number == a string is always false")]
#[case::unequal("name != 5", "a string != a number is always true")]
#[case::a_number_in_a_list("amount in lists.x", "a number in a list of strings is always false")]
#[case::a_list_in_a_list("items in lists.x", "a list in a list of strings is always false")]
#[case::two_arguments("amount == name", "a number == a string is true only if both are null")]
#[case::two_unequal_arguments("items != name", "a list != a string is false only if both are null")]
#[case::arguments_in_a_list(
    "amount in [name, name]",
    "a number in a list whose items are a string is true only if both are null"
)]
fn a_part_that_is_always_the_same_is_reported(#[case] text: &str, #[case] sentence: &str) {
    assert_eq!(defects(text), [Defect::Constant(sentence.into())]);
}

#[rstest]
#[case::threshold("amount > 500")]
#[case::integer_with_double("count >= 1.5")]
#[case::not_known("x > 'a' && y > 5 && z")]
#[case::a_field_may_be_anything("address.zip > 'x' || address['zip'] > 5")]
#[case::an_item_may_be_anything("items.exists(i, i.price > 5) && items[0] == 'x'")]
#[case::null_is_asked_for("amount == null || amount != null")]
#[case::a_declared_bool("urgent && !args.urgent")]
#[case::conversions("int(name) > 5 && string(amount) > 'x' && double(count) * 1.5 > 2.0")]
#[case::sums("name + 'x' == 'yx' && amount + 1 > 5 && size(items + [1]) > 1")]
#[case::in_and_has("'x' in items && name in address && has(args.amount) && has(address.zip) && x in y")]
#[case::a_choice("(urgent ? amount : count) > 5 && (urgent ? name : amount) > 5")]
#[case::macros("size(items.filter(i, i > 5)) > 1 && items.map(i, i + 1) == [1]")]
#[case::sources("!fromUser(name) && !fromTool(amount, 'x') && items.all(i, fromUser(i))")]
#[case::text_functions("host(name) in lists.x && domain(name).lowerAscii() == 'y' && name.matches('z')")]
#[case::earlier("size(calls('x')) > 1 && results('x').exists(r, r.amount == amount)")]
fn a_condition_that_can_have_a_result_has_no_defects(#[case] text: &str) {
    assert_eq!(defects(text), []);
}

#[rstest]
#[case::a_field("address.contry == 'US'", "address.contry")]
#[case::has_a_field("has(args.address.contry)", "address.contry")]
#[case::by_index("address['contry'] == 'US'", "address.contry")]
#[case::a_name_in_an_object("'contry' in args.address", "address.contry")]
#[case::a_field_of_an_item("recipients.exists(r, r.emial == 'x')", "recipients[].emial")]
#[case::a_field_of_a_filtered_item(
    "size(recipients.filter(r, has(r.email)).filter(r, has(r.mail))) > 1",
    "recipients[].mail"
)]
#[case::a_field_of_the_first_item("recipients[0].mail == 'x'", "recipients[].mail")]
fn a_field_that_the_schema_does_not_have_is_unknown(#[case] text: &str, #[case] field: &str) {
    let found = examine(text, &listed());
    assert_eq!(found.unknown_fields.keys().collect::<Vec<_>>(), [field]);
    assert!(!found.possible_fields.contains(field));
    assert_eq!(found.defects, []);
}

#[rstest]
#[case::listed("address.country == 'US' && recipients.all(r, r.email != 'x') && 'zip' in address")]
#[case::an_object_of_anything("has(free.x) && free.x.y == 1 && 'z' in free")]
#[case::other_fields_are_allowed("meta.b == 'x' && has(meta.a)")]
#[case::a_name_that_is_computed("address[meta.a] == 'x'")]
#[case::an_argument_that_the_tool_lacks("has(args.place) && args.place.x == 1")]
fn any_other_field_is_possible(#[case] text: &str) {
    let found = examine(text, &listed());
    assert_eq!((found.unknown_fields.len(), found.defects), (0, vec![]));
}

#[rstest]
#[case::a_field("address.zip == '1'", "a number == a string is always false")]
#[case::an_item("tags.exists(t, t == 5)", "a string == a number is always false")]
#[case::a_number_in_a_list_of_texts("5 in tags", "a number in a list whose items are a string is always false")]
#[case::an_item_of_a_named_list("lists.x.exists(t, t == 5)", "a string == a number is always false")]
#[case::an_item_and_a_field(
    "recipients.exists(r, r.email == address.zip)",
    "a string == a number is true only if both are null"
)]
#[case::a_field_in_a_list(
    "address.zip in tags",
    "a number in a list whose items are a string is true only if both are null"
)]
fn types_within_arguments_are_checked(#[case] text: &str, #[case] sentence: &str) {
    assert_eq!(examine(text, &listed()).defects, [Defect::Constant(sentence.into())]);
}

#[test]
fn a_string_has_no_field_also_in_a_list() {
    let sentence = "a string has no field \"email\"".to_owned();
    assert_eq!(examine("tags.exists(t, t.email == 'x')", &listed()).defects, [Defect::Undecidable(sentence)]);
}

#[test]
fn earlier_calls_have_the_arguments_of_their_tool() {
    let condition = Condition::compile("calls('pay').exists(c, has(c.adress) || c.address.contry == 'x')").unwrap();
    let signature = listed();
    let found =
        condition.examine(&Signature::default(), "pay", &|_, _| Shape::object(signature.fields().clone()), false);
    let unknown: Vec<_> = found.unknown_fields.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["calls('pay')[].address.contry", "calls('pay')[].adress"]);
}

#[rstest]
#[case::of_results("results('rent').exists(r, has(r.amuont))", &["results('rent')[].amuont"], &[])]
#[case::by_name("results('rent').exists(r, r['amount'] > 5 || 'amuont' in r)", &["results('rent')[].amuont"], &[])]
#[case::of_a_field("results('rent').all(r, r.tenant.nmae == 'ada')", &["results('rent')[].tenant.nmae"], &[])]
#[case::of_the_result("!has(result.amuont) || result.amount > 5", &["result.amuont"], &[])]
#[case::of_a_step("steps.rent.result.amuont == steps.rent.args.x", &["steps.rent.args.x", "steps.rent.result.amuont"], &[])]
#[case::of_an_item("results('list').exists(all, all.exists(bill, bill.ibn == 'x'))", &["results('list')[][].ibn"], &[])]
#[case::another_type("results('rent').exists(r, r.amount == 'x')", &[], &["a number == a string is always false"])]
#[case::a_type_of_an_item("results('list').exists(all, all.exists(bill, bill.iban > 5))", &[], &["a string > a number cannot be compared"])]
#[case::all_that_exist("results('rent').exists(r, r.amount > 5) && results('list').exists(all, all.exists(bill, bill.iban == name))", &[], &[])]
#[case::a_result_of_any_type("results('rent').exists(r, r == 'ok' || r > 5 || size(r) > 1)", &[], &[])]
fn the_fields_of_a_result_are_those_of_its_schema(
    #[case] text: &str,
    #[case] unknown: &[&str],
    #[case] defects: &[&str],
) {
    let rent = json!({"type": "object", "properties": {
        "amount": {"type": "number"}, "tenant": {"type": "object", "properties": {"name": {"type": "string"}}},
    }});
    let bill = json!({"type": "object", "properties": {"iban": {"type": "string"}}});
    let list = json!({"type": "object", "properties": {"result": {"type": "array", "items": bill}}});
    let earlier = |earlier: Earlier, tool: &str| match (earlier, tool) {
        (Earlier::Calls, _) => Shape::object(Fields { are_all: true, ..Fields::default() }),
        (Earlier::Results, "rent") => of_output(&rent, &[], true),
        (Earlier::Results, _) => of_output(&list, &[], true),
    };
    let condition = Condition::compile_as(text, Dialect::Step).unwrap();
    let found = condition.examine(&declared(), "rent", &earlier, false);
    assert_eq!(found.unknown_fields.keys().map(String::as_str).collect::<Vec<_>>(), unknown);
    let sentences = found.defects.iter().map(|defect| match defect {
        Defect::Undecidable(sentence) | Defect::Constant(sentence) => sentence.as_str(),
        Defect::Text(fault) => fault.sentence.as_str(),
    });
    assert_eq!(sentences.collect::<Vec<_>>(), defects);
}

#[rstest]
#[case::a_host("host(name) == 'Bit.ly'", true)]
#[case::the_other_side("'Bit.ly' != host(name)", true)]
#[case::one_of_several("domain(name) in ['own.com', '@evil.com']", true)]
#[case::the_end("domain(name).endsWith('@own.com')", true)]
#[case::small_letters("name.lowerAscii().contains('HTTP')", true)]
#[case::of_each_item("items.exists(i, host(i) == 'https://own.com')", true)]
#[case::a_blank_in_a_plain_text("name == 'ada '", false)]
fn a_text_that_a_value_never_has_is_a_defect(#[case] text: &str, #[case] is_certain: bool) {
    let found = defects(text);
    let [Defect::Text(fault)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(fault.is_certain, is_certain, "{fault:?}");
}

#[rstest]
#[case::a_host("host(name) in ['own.com', 'a.own.com'] || domain(name).endsWith('.own.com')")]
#[case::a_plain_text("name == 'Ada' || name.contains('Ada ') || name in ['Ada', 'Bob']")]
fn a_text_that_a_value_can_have_is_no_defect(#[case] text: &str) {
    assert_eq!(defects(text), []);
}

/// `evil-own.com` ends with `own.com` too, and `own.com.evil.org` contains it. If they are held as well, they do not pass.
#[rstest]
#[case::to_hold("domain(name).endsWith('own.com')", false, false)]
#[case::to_allow("domain(name).endsWith('own.com')", true, true)]
#[case::to_hold_all_others("!domain(name).endsWith('own.com')", false, true)]
#[case::to_hold_all_others_if_a_person_did_not_ask(
    "!(fromUser(name) || domain(name).endsWith('own.com'))",
    false,
    true
)]
#[case::to_allow_all_others("urgent && !domain(name).endsWith('own.com')", true, false)]
#[case::to_hold_an_item("items.exists(i, domain(i).endsWith('own.com'))", false, false)]
#[case::to_hold_all_other_items("!items.all(i, domain(i).endsWith('own.com'))", false, true)]
#[case::to_hold_one_item("items.exists_one(i, domain(i).endsWith('own.com'))", false, true)]
#[case::to_hold_in_a_choice("urgent ? domain(name).endsWith('own.com') : true", false, false)]
#[case::to_choose("domain(name).endsWith('own.com') ? urgent : true", false, true)]
#[case::to_compare("domain(name).endsWith('own.com') == false", false, true)]
#[case::to_count("size(items.filter(i, domain(i).endsWith('own.com'))) == 0", false, true)]
#[case::a_part_to_hold("domain(name).contains('own.com')", false, false)]
#[case::a_part_to_allow("domain(name).contains('own.com')", true, true)]
#[case::a_part_to_hold_all_others("!domain(name).contains('own.com')", false, true)]
#[case::the_beginning_to_hold_all_others("!host(name).startsWith('own.com')", false, true)]
#[case::any_dot_to_hold_all_others("!host(name).contains('.')", false, false)]
#[case::a_part_of_a_text_to_hold_all_others("!name.contains('own.com')", false, false)]
fn a_part_of_another_host_must_not_let_a_call_pass(#[case] text: &str, #[case] allows: bool, #[case] is_refused: bool) {
    let condition = Condition::compile(text).unwrap();
    let found = condition.examine(&declared(), "pay", &unknown, allows).defects;
    assert_eq!(!found.is_empty(), is_refused, "{found:?}");
}

/// Conditions of agents for mail and calendars.
#[rstest]
#[case::other_recipients("!args.name.endsWith('@own.com')")]
#[case::a_part("name.contains('@') && name.startsWith('ada')")]
#[case::since_a_date("args.name >= '2026-01-01' && name < '2026-02'")]
#[case::outside_of_hours("name < '09:00' || name > '09'")]
fn ends_dates_and_times_can_be_compared(#[case] text: &str) {
    let condition = Condition::compile(text).unwrap();
    assert_eq!(condition.examine(&declared(), "pay", &unknown, false).defects, []);
}

#[test]
fn each_use_of_a_list_has_its_comparisons() {
    let text = "host(name) in lists.a || lists.b.exists(b, name == b || name.contains(b)) || size(lists.c) > 1";
    let uses = examine(text, &declared()).list_uses;
    let form = Some(Form::Host(bloomery_cel::Function::Host));
    let found: Vec<_> = uses.iter().map(|of| (of.name.as_str(), of.comparisons.as_slice())).collect();
    let of_b = [(None, Comparison::Whole), (None, Comparison::PassingPart)];
    assert_eq!(found, [("a", &[(form, Comparison::Whole)][..]), ("b", &of_b[..]), ("c", &[][..])]);
}

fn call() -> impl Strategy<Value = Value> {
    let value = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(7),
        json!(1.5),
        json!("a"),
        json!([1]),
        json!({"x": 1}),
    ]);
    prop::collection::vec(value, 3).prop_map(|of| json!({"x": of[0], "y": of[1], "z": of[2]}))
}

proptest! {
    /// Without declared inputs, a defect of the whole condition holds for every call.
    #[test]
    fn a_reported_defect_holds_for_every_call(
        operator in prop::sample::select(vec!["+", "-", "*", "<", ">=", "in", "=="]),
        operands in prop::collection::vec(prop::sample::select(vec!["x", "y", "1", "'a'", "[z]", "null", "size(x)", "args", "true"]), 3),
        of in call(),
    ) {
        let [left, right, other] = operands.as_slice() else { unreachable!() };
        for text in [format!("{left} {operator} {right}"), format!("({left} {operator} {right}) > {other}")] {
            let condition = Condition::compile(&text).unwrap();
            let answer = condition.evaluate(&of, &[]);
            for defect in condition.examine(&Signature::default(), "pay", &unknown, true).defects {
                match defect {
                    Defect::Undecidable(_) => prop_assert!(
                        matches!(answer, Err(Error::Cel(CelError::Evaluation(_) | CelError::NotBool(_)))), "{text}: {answer:?}"
                    ),
                    // A part of a comparison may have no value for another reason.
                    Defect::Text(fault) => panic!("{text}: {fault:?}"),
                    Defect::Constant(sentence) => prop_assert!(
                        answer.is_err() || text.starts_with('(') || sentence.ends_with(&format!("{:?}", answer == Ok(true))),
                        "{text}: {answer:?}"
                    ),
                }
            }
        }
    }
}
