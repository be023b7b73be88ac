use super::*;
use crate::page::coloured;
use bloomery_testkit::objects::approvals::{approval, now};
use rstest::rstest;

#[test]
fn the_page_shows_everything_that_a_person_decides_on() {
    let arguments = r#"{"amount":901.9,"note":"It arrived broken.\nSo I refund it.","order_id":"A-443","whole":false}"#;
    let page = render(&approval("refund-1", "supervisor", arguments), "jane@acme.io", now());
    insta::assert_snapshot!(page);
    let plain = anstream::adapter::strip_str(&coloured(&page)).to_string();
    assert_eq!(plain, page, "colours must not change the text");
}

/// A model must not be able to imitate or hide a line of the page.
#[test]
fn hostile_text_cannot_control_the_terminal_or_imitate_a_line() {
    let hostile = "900\nExpires     never\u{202e}\u{1b}[2J\u{200b}";
    let arguments =
        canonical::to_string(&serde_json::json!({ "amount  1\nYou": 1, "note": hostile, "of": {"b": [1]} }));
    let mut approval = approval("refund-1", "super\u{1b}visor", &arguments);
    approval.spec.goal = hostile.to_owned();
    approval.spec.events = vec![hostile.to_owned()];
    approval.spec.rules[0].text = hostile.to_owned();
    insta::assert_snapshot!(render(&approval, "jane\u{1b}@acme.io", now()));
}

#[rstest]
#[case::no_object("[1]", "[1]")]
#[case::no_json("amount=900", "amount=900")]
#[case::not_canonical(r#"{"amount": 900}"#, r#"{"amount": 900}"#)]
#[case::duplicate_names(r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#)]
#[case::none("{}", "none")]
#[case::empty(r#"{"":""}"#, r#"""  """#)]
#[case::one_line_end(r#"{"a":"\n"}"#, r#"a  "\n""#)]
#[case::no_line_end(r#"{"a":"\\n\\\""}"#, r#"a  "\\n\\\"""#)]
#[case::digits_stay(r#"{"a":9007199254740993}"#, "a  9007199254740993")]
fn only_canonical_arguments_are_a_table(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(arguments(text), expected);
}

#[rstest]
#[case::a_day("2027-01-16T08:30:10Z", "24h from now")]
#[case::hours("2027-01-15T10:35:40Z", "2h 5m from now")]
#[case::seconds("2027-01-15T08:30:52Z", "42s from now")]
fn the_time_until_the_expiry_is_shown(#[case] expires: Timestamp, #[case] expected: &str) {
    let text = expiry(expires, now());
    assert!(text.ends_with(expected), "{text}");
}
