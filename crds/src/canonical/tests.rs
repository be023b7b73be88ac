use super::{CanonicalJson, Digest, Error, MAX_DEPTH, parse, to_string};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

#[test]
fn keys_are_sorted_at_every_depth() {
    let value = parse(r#"{"b":{"z":1,"a":[{"y":2,"x":3}]},"a":null}"#).unwrap();
    assert_eq!(to_string(&value), r#"{"a":null,"b":{"a":[{"x":3,"y":2}],"z":1}}"#);
}

#[test]
fn integers_that_share_a_double_have_different_digests() {
    let one = parse(r#"{"order":9007199254740993}"#).unwrap();
    let other = parse(r#"{"order":9007199254740992}"#).unwrap();
    assert_ne!(Digest::of_value(&one), Digest::of_value(&other));
}

#[rstest]
#[case::duplicate(r#"{"a":1,"a":2}"#, Error::DuplicateKey("a".into()))]
#[case::duplicate_deep(r#"[{"x":{"k":1,"k":1}}]"#, Error::DuplicateKey("k".into()))]
#[case::duplicate_by_escape(r#"{"a":1,"\u0061":2}"#, Error::DuplicateKey("a".into()))]
#[case::beyond_u64("18446744073709551616", Error::InexactNumber("18446744073709551616".into()))]
#[case::too_many_digits("[0.10000000000000000001]", Error::InexactNumber("0.10000000000000000001".into()))]
#[case::underflow("1e-400", Error::InexactNumber("1e-400".into()))]
#[case::negative_zero("-0", Error::InexactNumber("-0".into()))]
fn ambiguous_json_is_refused(#[case] text: &str, #[case] error: Error) {
    assert_eq!(CanonicalJson::parse(text).as_ref(), Err(&error));
    assert_eq!(parse(text), Err(error));
}

#[rstest]
#[case("1e400")]
#[case("{")]
#[case("NaN")]
#[case(r#"{"a":1} x"#)]
fn invalid_json_is_refused(#[case] text: &str) {
    assert!(matches!(parse(text), Err(Error::Syntax(_))), "{text}");
    assert!(matches!(CanonicalJson::parse(text), Err(Error::Syntax(_))), "{text}");
}

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    let text = "[".repeat(100_000);
    assert!(matches!(parse(&text), Err(Error::Syntax(_))));
}

#[test]
fn a_value_that_is_nested_too_deep_is_refused_however_it_is_written() {
    let nested = |levels: usize, inner: &str| "[".repeat(levels) + inner + &"]".repeat(levels);
    // A number with an exponent is left to the slower reader.
    for inner in ["1", "1e2"] {
        assert!(CanonicalJson::parse(&nested(MAX_DEPTH, inner)).is_ok(), "{inner}");
        assert_eq!(CanonicalJson::parse(&nested(MAX_DEPTH + 1, inner)), Err(Error::TooDeep(MAX_DEPTH)), "{inner}");
    }
}

#[rstest]
#[case("500.50", "500.5")]
#[case("1E2", "100.0")]
#[case("250704378937362.62", "250704378937362.62")]
#[case("18446744073709551615", "18446744073709551615")]
#[case("-9223372036854775808", "-9223372036854775808")]
#[case(r#""12345678901234567890123""#, r#""12345678901234567890123""#)]
#[case(r#"{"a\"1":"99999999999999999999"}"#, r#"{"a\"1":"99999999999999999999"}"#)]
fn exact_numbers_and_strings_keep_their_value(#[case] text: &str, #[case] canonical: &str) {
    assert_eq!(to_string(&parse(text).unwrap()), canonical);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("-0.0 equals 0.0, but is written as -0.0", |f| *f != 0.0).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    nested(leaf, ".*")
}

/// Returns lists and objects of these values. `names` is the pattern of the names.
pub(super) fn nested(
    leaf: impl Strategy<Value = Value> + 'static,
    names: &'static str,
) -> impl Strategy<Value = Value> {
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_canonical_text_is_parsed_and_written_unchanged(value in any_json()) {
        let text = to_string(&value);
        let read = parse(&text).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(to_string(&read), text);
    }

    /// `serde_json` sorts the keys of its maps, and writes the shortest escapes.
    #[test]
    fn the_canonical_text_is_that_of_serde_json(value in any_json(), text in "[\\x00-\\x7f]{0,80}") {
        prop_assert_eq!(to_string(&value), value.to_string());
        let text = Value::from(text);
        prop_assert_eq!(to_string(&text), text.to_string());
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = parse(&text);
    }
}

#[test]
fn only_a_valid_text_is_parsed_as_a_digest() {
    let digest = Digest::of_value(&json!({}));
    assert_eq!(digest.to_string().parse::<Digest>().as_ref(), Ok(&digest));
    assert_eq!(digest.short(8).len(), 8);
    assert!("sha256:xyz".parse::<Digest>().is_err());
}

proptest! {
    #[test]
    fn a_digest_returns_the_bytes_of_the_sha_256(content: Vec<u8>) {
        let bytes: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(&content).into();
        prop_assert_eq!(Digest::of_bytes(&content).bytes(), Some(bytes));
    }

    #[test]
    fn an_invalid_digest_has_no_bytes(text: String) {
        prop_assert_eq!(Digest(text.clone()).bytes().is_some(), text.parse::<Digest>().is_ok());
    }
}

#[test]
fn a_digest_has_exactly_one_form() {
    let good = Digest::of_bytes(b"").0;
    let upper_case = good.to_uppercase().replace("SHA", "sha");
    for text in [format!("{good}0"), good[..70].to_owned(), good.replace("sha256", "sha512"), upper_case] {
        assert_eq!((Digest(text.clone()).bytes(), text.parse::<Digest>().ok()), (None, None), "{text}");
    }
}
