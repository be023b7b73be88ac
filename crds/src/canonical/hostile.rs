//! Tests with hostile texts: pairs with different meanings, whose digests must differ, and texts that could overflow the stack or
//! take very long.

use super::{CanonicalJson, Digest, Error, depth, parse, to_string};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

fn digest(text: &str) -> Digest {
    Digest::of_value(&parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// The two texts of each case have different meanings, so an approval of one must not cover the other.
#[rstest]
#[case::beyond_doubles("9007199254740992", "9007199254740993")]
#[case::at_the_end_of_u64("18446744073709551614", "18446744073709551615")]
#[case::at_the_end_of_i64("-9223372036854775808", "-9223372036854775807")]
#[case::last_digits("0.1", "0.10000000000000002")]
#[case::a_number_and_its_text("500", "\"500\"")]
#[case::null_and_nothing(r#"{"a":null}"#, "{}")]
#[case::null_and_its_text("null", "\"null\"")]
#[case::empty_things("[]", "{}")]
#[case::a_list_in_a_list("[[1],2]", "[1,[2]]")]
#[case::where_a_key_ends(r#"{"a":"b\",\"c\":\"d"}"#, r#"{"a":"b","c":"d"}"#)]
#[case::letters_that_look_alike("\"\u{e9}\"", "\"e\u{301}\"")]
#[case::letters_of_another_alphabet("\"amount\"", "\"\u{430}mount\"")]
#[case::an_invisible_character("\"a\"", "\"a\\u200b\"")]
#[case::case(r#"{"amount":1}"#, r#"{"Amount":1}"#)]
fn texts_with_different_meanings_have_different_digests(#[case] one: &str, #[case] other: &str) {
    assert_ne!(digest(one), digest(other));
}

/// A model may write the same arguments in two ways. Their digests must be equal, so that a repeated failure is recognised.
#[rstest]
#[case::keys(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#)]
#[case::blanks("[1,2]", " [ 1 ,\n\t2 ] ")]
#[case::escapes(r#"{"a/b":"é"}"#, r#"{"\u0061\/b":"\u00e9"}"#)]
#[case::a_pair_of_surrogates("\"\u{1f600}\"", r#""\ud83d\ude00""#)]
#[case::zeros_at_the_end("0.5", "0.50")]
#[case::exponents("150.0", "1.5E+2")]
fn texts_with_the_same_meaning_have_the_same_digest(#[case] one: &str, #[case] other: &str) {
    assert_eq!(digest(one), digest(other));
}

/// The first two floats are halfway between two decimals of the same length, and the others are at the ends of the range. The
/// written decimal must be parsed as the same float.
#[rstest]
#[case(2_005_635_031_498_901.0 / 8.0)]
#[case(-2_005_635_031_498_901.0 / 8.0)]
#[case(5e-324)]
#[case(f64::MAX)]
fn a_written_float_is_parsed_as_the_same_float(#[case] float: f64) {
    let value = json!({ "amount": float });
    assert_eq!(parse(&to_string(&value)), Ok(value));
}

#[rstest]
#[case::lists("[")]
#[case::objects("{\"a\":")]
#[case::both("[{\"a\":")]
fn deep_nesting_is_refused_on_a_small_stack(#[case] part: &'static str) {
    let parse_both = move || {
        let text = part.repeat(500_000);
        assert!(matches!(parse(&text), Err(Error::Syntax(_))));
        assert!(matches!(CanonicalJson::parse(&text), Err(Error::Syntax(_))));
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(parse_both).unwrap().join().unwrap();
}

/// The check must take linear time: with quadratic time, this test would not end.
#[rstest]
#[case::digits("1".repeat(1_000_000))]
#[case::a_fraction(format!("0.{}", "1".repeat(1_000_000)))]
#[case::zeros(format!("1{}", "0".repeat(1_000_000)))]
#[case::an_exponent(format!("1e{}", "9".repeat(1_000_000)))]
#[case::strings_without_an_end("\"\\".repeat(500_000))]
fn long_numbers_and_texts_are_refused_with_a_short_error(#[case] text: String) {
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.len() <= 256, "{error}");
}

#[test]
fn a_long_duplicate_key_is_shortened_in_the_error() {
    let key = "k".repeat(60_000);
    let error = parse(&format!(r#"{{"{key}":1,"{key}":2}}"#)).unwrap_err();
    assert!(matches!(&error, Error::DuplicateKey(shown) if shown.starts_with("kkk")), "{error}");
    assert!(error.to_string().len() <= 256, "{error}");
}

/// A key may contain the prefix that marks duplicate keys in the parser's messages.
#[test]
fn a_key_with_the_prefix_of_duplicates_is_a_normal_key() {
    let error = parse(r#"{"\u0001duplicate:x\u0001":1,"a":2,"a":3}"#).unwrap_err();
    assert_eq!(error, Error::DuplicateKey("a".into()));
    assert!(parse(r#"{"\u0001duplicate:x\u0001":1}"#).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, 2.0, 1e300]).prop_map(Value::from),
        "[a1\",:]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a1\",:]{0,2}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The values are built from few small parts, so that some pairs are equal.
    #[test]
    fn values_are_equal_if_and_only_if_their_digests_are(one in any_json(), other in any_json()) {
        prop_assert_eq!(Digest::of_value(&one) == Digest::of_value(&other), one == other);
    }

    #[test]
    fn a_duplicate_key_is_refused_at_any_place(around in any_json(), twice in any_json()) {
        let text = json!({"around": around, "here": "HERE"}).to_string();
        let object = format!(r#"{{"k":{twice},"\u006b":{twice}}}"#);
        let text = text.replacen("\"HERE\"", &object, 1);
        prop_assert_eq!(parse(&text), Err(Error::DuplicateKey("k".into())));
        prop_assert_eq!(CanonicalJson::parse(&text), Err(Error::DuplicateKey("k".into())));
    }

    #[test]
    fn depth_counts_the_levels_of_nesting(levels in 0_usize..120) {
        let value = parse(&format!("{}{}", "[".repeat(levels), "]".repeat(levels))).ok();
        prop_assert_eq!(value.map(|value| depth(&value)), (levels > 0).then_some(levels));
    }
}

#[test]
fn keys_are_escaped() {
    assert_eq!(to_string(&json!({"a\"b\n": 1})), r#"{"a\"b\n":1}"#);
}
