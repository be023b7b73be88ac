//! Tests of the limits.

use super::*;
use proptest::prelude::*;
use rstest::rstest;

#[rstest]
#[case::a_comparison("amount > 500")]
#[case::with_a_presence_test("has(args.x) && args['a-b'] == 'c'")]
#[case::a_macro("items.exists(i, i.price * i.quantity > 500.50)")]
#[case::two_macros_side_by_side("a.all(x, x > 1) && b.exists(y, y == 2)")]
#[case::nested_macros("a.all(x, b.exists(y, y == x))")]
#[case::a_field_named_like_a_macro("args.map == 1 && all > 3")]
#[case::brackets_in_strings(r#"note == "((((((((((((((((((((((((((((((" "#)]
#[case::brackets_in_raw_strings(r"note == r'\(((((((((((((((((((((((((((((('")]
#[case::brackets_in_long_strings("note == '''((((((((((((((\n((((((((((((((('''")]
#[case::brackets_in_comments("amount > 1 // ((((((((((((((((((((((((((((((")]
#[case::escapes(r#"note == "\n\x41\u00e9\U0001F600\101\"" "#)]
#[case::as_deep_as_allowed("((((((((((((((((((((((((1))))))))))))))))))))))))")]
fn a_condition_within_the_limits_passes(#[case] text: &str) {
    assert_eq!(check(text), Ok(()));
}

#[test]
fn a_long_chain_of_and_is_not_deep() {
    assert_eq!(check(&vec!["a.b > 1"; 60].join(" && ")), Ok(()));
    assert_eq!(check(&format!("x in [{}]", vec!["-1"; 200].join(","))), Ok(()));
}

#[rstest]
#[case::parentheses("(".repeat(25) + "1" + &")".repeat(25))]
#[case::lists("[".repeat(25) + &"]".repeat(25))]
#[case::maps("{1:".repeat(25) + "1" + &"}".repeat(25))]
#[case::not("!".repeat(25) + "true")]
#[case::minus("-".repeat(25) + "1")]
#[case::sums(vec!["1"; 26].join("+"))]
#[case::comparisons(vec!["1"; 26].join(" == "))]
#[case::conditionals("true ? 1 : ".repeat(25) + "1")]
#[case::conditionals_in_the_middle("true ? ".repeat(25) + "1" + &" : 1".repeat(25))]
#[case::selections("a".to_owned() + &".b".repeat(25))]
#[case::indices("a".to_owned() + &"[0]".repeat(25))]
#[case::calls("a".to_owned() + &".b()".repeat(13))]
#[case::membership("a".to_owned() + &" in a".repeat(25))]
#[case::mixed("-(a.b[".repeat(8) + "1" + &"])".repeat(8))]
#[case::in_the_term_of_an_and("a && ".to_owned() + &"(b && ".repeat(25) + "c" + &")".repeat(25))]
fn every_recursive_construct_counts_towards_the_depth(#[case] text: String) {
    assert!(matches!(check(&text), Err(Error::TooDeep { .. })), "{text}: {:?}", check(&text));
}

#[rstest]
#[case::empty("", Error::Empty)]
#[case::only_a_comment(" // nothing", Error::Empty)]
#[case::closed_twice("(a))", Error::Unbalanced { bracket: ')', at: 3 })]
#[case::never_closed("f([a", Error::Unbalanced { bracket: '[', at: 2 })]
#[case::closed_by_another("(a]", Error::Unbalanced { bracket: ']', at: 2 })]
#[case::string_without_end("a == 'b", Error::BadString { at: 5 })]
#[case::string_over_lines("a == 'b\n'", Error::BadString { at: 5 })]
#[case::unknown_escape(r"a == '\q((((('", Error::BadString { at: 5 })]
#[case::broken_escape(r"a == '\xZZ((((('", Error::BadString { at: 5 })]
#[case::quoted_name("a.`b`", Error::Character { character: '`', at: 2 })]
#[case::foreign_character("amount ≥ 500", Error::Character { character: '≥', at: 7 })]
#[case::single_ampersand("a & b", Error::Character { character: '&', at: 2 })]
fn an_error_names_the_fault_and_its_position(#[case] text: &str, #[case] fault: Error) {
    assert_eq!(check(text), Err(fault));
}

#[test]
fn a_condition_of_1024_bytes_is_the_longest_allowed() {
    let text = |length: usize| format!("a == '{}'", "x".repeat(length - 7));
    assert_eq!(check(&text(MAX_LENGTH_BYTES)), Ok(()));
    assert_eq!(check(&text(MAX_LENGTH_BYTES + 1)), Err(Error::TooLong { length: MAX_LENGTH_BYTES + 1 }));
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,300}") {
        let _ = check(&text);
    }

    #[test]
    fn no_sequence_of_tokens_panics(text in r#"([a-z0-9.,:?!&|+<>=(){}\[\]'"\\ -]|''')*"#) {
        let _ = check(&text);
    }
}
