use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn keeps(before: &str, after: &str) -> Result<(), String> {
    check_content(before, after, &Map::new()).map_err(|error| error.to_string())
}

#[rstest]
#[case::the_same("Order A-17 is on its way.", "Order A-17 is on its way.")]
#[case::other_words("You get 12.50 back.", "Good news! **12.50** will be with you soon.")]
#[case::a_thousand_separator("1,000 points", "1000 points")]
#[case::trailing_zeros("It costs 2.50.", "It costs 2.5!")]
#[case::a_unit_in_another_place("$500", "500 $")]
#[case::the_order_of_numbers("3 of 5", "5, of which 3")]
#[case::a_list_gets_ordinals("First sign in, then pay 5.", "1. Sign in\n2. Pay 5")]
#[case::a_list_loses_ordinals("1) Sign in\n2) Pay 5", "- Sign in\n- Pay 5")]
#[case::all_ones("1. a\n1. b", "- a\n- b")]
#[case::ordinals_in_bold("Sign in, pay", "**1.** Sign in\n**2.** Pay")]
#[case::nested_ordinals("a b c", "1. a\n   1. b\n2. c")]
#[case::a_url_in_a_link("See https://x.example/a_(b)?n=1.", "See [here](https://x.example/a_(b)?n=1)!")]
#[case::a_url_in_angle_brackets("See https://x.example/a,", "See <https://x.example/a>")]
#[case::an_address("Write to me@x.example.", "Write to <me@x.example>!")]
#[case::an_address_as_a_link("Write to me@x.example", "Write to mailto:me@x.example")]
#[case::a_code_span("Run `a  1` now", "Now run `a  1`")]
#[case::a_code_block("```sh\nrm -rf 1\n```", "Do this:\n```sh\nrm -rf 1\n```\nDone.")]
#[case::a_backtick_in_code("Run `` a`b `` now", "Now: `` a`b ``")]
#[case::a_hyphen_is_no_minus("A-17", "a-17")]
fn content_is_kept(#[case] before: &str, #[case] after: &str) {
    assert_eq!(keeps(before, after), Ok(()));
    assert_eq!(keeps(after, before), Ok(()));
}

#[rstest]
#[case::a_number(
    "You get 12.50",
    "You get 125.0",
    "the number \"12.5\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_number_twice(
    "You get 5",
    "You get 5, yes, 5",
    "the number \"5\" occurs once in the answer and 2 times in the rewritten answer"
)]
#[case::a_number_is_lost(
    "You get 5 of 5",
    "You get 5",
    "the number \"5\" occurs 2 times in the answer and once in the rewritten answer"
)]
#[case::a_number_in_words(
    "You get 5",
    "You get five",
    "the number \"5\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_sign(
    "-5 degrees",
    "5 degrees",
    "the number \"-5\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_sign_before_a_currency(
    "-$5",
    "$5",
    "the number \"-5\" occurs once in the answer and never in the rewritten answer"
)]
#[case::another_currency("5 $", "5 €", "the sign \"$\" occurs once in the answer and never in the rewritten answer")]
#[case::a_percentage("5 %", "5", "the sign \"%\" occurs once in the answer and never in the rewritten answer")]
#[case::a_thousand_separator_of_another_country(
    "1.000 €",
    "1 €",
    "the number \"1.000\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_version(
    "1.20.0",
    "1.2.0",
    "the number \"1.20.0\" occurs once in the answer and never in the rewritten answer"
)]
#[case::leading_zeros(
    "Room 007",
    "Room 7",
    "the number \"007\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_fraction_sign(
    "½ of it",
    "all of it",
    "the number \"½\" occurs once in the answer and never in the rewritten answer"
)]
#[case::other_digits(
    "٥ days",
    "6 days",
    "the number \"٥\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_number_that_is_no_ordinal(
    "You owe\n17. Pay",
    "You owe\nPay",
    "the number \"17\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_url(
    "https://x.example/1",
    "https://y.example/1",
    "the URL \"https://x.example/1\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_new_url(
    "Done.",
    "Done: [here](https://evil.example)",
    "the URL \"https://evil.example\" occurs never in the answer and once in the rewritten answer"
)]
#[case::a_new_link_without_scheme(
    "Done.",
    "Done: [here](//evil)",
    "the URL \"//evil\" occurs never in the answer and once in the rewritten answer"
)]
#[case::a_new_host(
    "Done.",
    "Done, see evil.example/pay",
    "the URL \"evil.example/pay\" occurs never in the answer and once in the rewritten answer"
)]
#[case::an_address(
    "me@x.example",
    "you@x.example",
    "the e-mail address \"me@x.example\" occurs once in the answer and never in the rewritten answer"
)]
#[case::a_code_span(
    "`rm a`",
    "`rm b`",
    "the code span \"rm a\" occurs once in the answer and never in the rewritten answer"
)]
#[case::white_space_in_code(
    "`a  b`",
    "`a b`",
    "the code span \"a  b\" occurs once in the answer and never in the rewritten answer"
)]
#[case::nothing_left("Done.", " \n", "the rewritten answer is empty")]
fn a_change_of_content_is_reported(#[case] before: &str, #[case] after: &str, #[case] sentence: &str) {
    assert_eq!(keeps(before, after), Err(sentence.to_owned()));
}

#[rstest]
#[case::kept("Order A-17 was shipped.", "Good news: A-17 was shipped!", true)]
#[case::wrapped("Wait for\nthe mail", "Please: Wait for the mail.", true)]
#[case::another_id("Order A-17 was shipped.", "Order B-17 was shipped.", false)]
#[case::a_state("Order A-17 was shipped.", "Order A-17 was lost.", false)]
#[case::a_value_in_neither_text("Done.", "All done.", true)]
#[case::a_part_of_a_word_is_another_word("Shipping.", "It is shipped.", false)]
#[case::a_nested_value("The carrier is Acme.", "Your carrier is Zenith.", false)]
fn values_of_fields_are_kept(#[case] before: &str, #[case] after: &str, #[case] kept: bool) {
    let fields = json!({
        "order_id": "A-17", "status": "shipped", "next_steps": ["Wait for the mail"], "by": {"carrier": "Acme"}, "count": 3, "open": true, "note": null, "blank": " ",
    });
    let result = check_content(before, after, fields.as_object().unwrap());
    assert_eq!(result.is_ok(), kept, "{result:?}");
}

#[test]
fn an_answer_that_is_too_large_stays_unpolished() {
    let long = "x ".repeat(MAX_TEXT_BYTES);
    assert!(keeps(&long, "x").is_err());
    assert!(keeps("x", &long).is_err());
    let fields: Map<String, Value> = (0..200).map(|n| (n.to_string(), json!(n.to_string()))).collect();
    assert!(check_content("x", "x", &fields).is_err());
}

/// A reader that backtracks would need quadratic time: the test would not end.
#[rstest]
#[case::digits("1")]
#[case::groups("1,000")]
#[case::dots("1.")]
#[case::backticks("` `` ``` ")]
#[case::brackets("](")]
#[case::schemes("a://")]
#[case::closing_brackets("http://)")]
#[case::at_signs("a@")]
#[case::units("$%")]
#[case::minuses("-$1")]
#[case::lists("1. a\n")]
fn hostile_texts_are_read_in_linear_time(#[case] part: &str) {
    let text = part.repeat(MAX_TEXT_BYTES / part.len());
    let fields = json!({"a": part, "b": part.repeat(50)});
    assert_eq!(check_content(&text, &text, fields.as_object().unwrap()), Ok(()));
}

proptest! {
    #[test]
    fn a_text_keeps_its_own_content(text in "(`{1,3}|https?://|www\\.|[a-z]{1,3}|[0-9]{1,3}|[.,()\\[\\]@%$*_~>#-]|\n|\t| |é|½|€){0,60}", value in ".{0,4}") {
        let fields = json!({"a": value, "b": [text]});
        prop_assert!(text.trim().is_empty() || check_content(&text, &text, fields.as_object().unwrap()).is_ok());
    }

    #[test]
    fn no_texts_panic(before in ".{0,80}", after in ".{0,80}") {
        let _ = keeps(&before, &after);
    }

    #[test]
    fn another_number_is_always_noticed(text in "[a-z .\n]{0,30}", one in 0_u32..100_000, other in 0_u32..100_000) {
        prop_assume!(one != other);
        let (one, other) = (format!("{text} is {one}"), format!("{text} is {other}"));
        prop_assert!(keeps(&one, &other).is_err());
    }
}
