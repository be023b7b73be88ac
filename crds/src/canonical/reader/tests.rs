use super::super::tests::nested;
use super::super::{parse, to_string};
use super::*;
use proptest::prelude::*;
use rstest::rstest;

/// Checks that a text which can be read has the value and the canonical text of the other reader and writer. Returns whether it can be read.
fn agrees(text: &str) -> bool {
    let Some((value, written)) = read(text) else { return false };
    assert_eq!(parse(text).as_ref(), Ok(&value), "{text}");
    assert_eq!(to_string(&value), written, "{text}");
    // Zero and minus zero are equal values.
    assert_eq!(to_string(&parse(text).unwrap()), written, "{text}");
    true
}

/// Writes a value with its fields in descending order, blanks, and escapes of one part.
fn spell(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[ {}]", items.iter().map(spell).collect::<Vec<_>>().join(" ,\n")),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{} :\t{}", spell_text(name), spell(value));
            format!("{{\r{} }}", fields.iter().rev().map(field).collect::<Vec<_>>().join(",  "))
        }
        Value::String(text) => spell_text(text),
        other => other.to_string(),
    }
}

fn spell_text(text: &str) -> String {
    let spell_char = |(at, c): (usize, char)| match (at % 3, c) {
        (0, '/' | '"' | '\\') => format!("\\{c}"),
        (_, '\t') => "\\t".to_owned(),
        (_, '\u{8}') => "\\b".to_owned(),
        (0, c) | (_, c @ ('\0'..=' ' | '"' | '\\')) if c <= '\u{ffff}' => format!("\\u{:04X}", u32::from(c)),
        (_, c) => c.to_string(),
    };
    format!("\"{}\"", text.chars().enumerate().map(spell_char).collect::<String>())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Written without an exponent.
        (-1e6_f64..1e6).prop_filter("no exponent", |double| double.abs() > 1e-3).prop_map(Value::from),
        (-100_000_i32..100_000).prop_map(|cents| Value::from(f64::from(cents) / 100.0)),
        ".*".prop_map(Value::from),
        "[\\x00-\\x7f]{0,40}".prop_map(Value::from),
    ];
    nested(leaf, "[a-c\"\\\\é]{0,3}|.*")
}

proptest! {
    #[test]
    fn every_usual_text_is_read(value in any_json()) {
        prop_assert!(agrees(&value.to_string()));
        prop_assert!(agrees(&spell(&value)), "{}", spell(&value));
    }

    #[test]
    fn no_text_is_read_in_another_way(
        texts in prop::collection::vec("[\\[\\]{}:, \"\\\\untfalse0-9.eE+-]{0,6}|\"[ab]\":|true|null|-?[0-9.]{1,22}", 0..8),
    ) {
        let text = texts.concat();
        agrees(&text);
        agrees(&format!("[{}]", texts.join(",")));
        agrees(&format!("{{\"b\":{},\"a\":[]}}", texts.join(",")));
    }

    #[test]
    fn a_changed_text_is_not_read_in_another_way(value in any_json(), at in any::<prop::sample::Index>(), new in "[\\x00-\\x7f]?") {
        let mut text: Vec<char> = spell(&value).chars().collect();
        let at = at.index(text.len());
        text.splice(at..=at, new.chars());
        agrees(&text.into_iter().collect::<String>());
    }
}

#[rstest]
#[case::a_number("12.99", "12.99")]
#[case::a_zero_at_the_end("500.50", "500.5")]
#[case::a_whole_double("-5.0", "-5.0")]
#[case::minus_zero("-0.0", "-0.0")]
#[case::a_small_double("0.00000123", "1.23e-6")]
#[case::a_large_double("12345678901234.5", "12345678901234.5")]
#[case::a_long_double("0.30000000000000004", "0.30000000000000004")]
#[case::the_largest_integer("18446744073709551615", "18446744073709551615")]
#[case::the_smallest_integer("-9223372036854775808", "-9223372036854775808")]
#[case::blanks(" {\"b\" : [ ] ,\n\"a\":{ } } ", r#"{"a":{},"b":[]}"#)]
#[case::names_that_are_escaped(r#"{"\u0062":1,"a\/":2,"a\"":3}"#, r#"{"a\"":3,"a/":2,"b":1}"#)]
#[case::unsorted_objects(r#"{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":2}"#, r#"{"a":2,"b":{"c":[{"e":2,"f":1}],"d":1}}"#)]
#[case::letters_outside_of_ascii(r#""é\u00e9\n""#, r#""éé\n""#)]
#[case::changed_parts_between_others(
    "{\"b\":[true,0.50,\"\\/\", null ],\"a\":{\"d\":[\"é\"] ,\"c\":false}}\n",
    r#"{"a":{"c":false,"d":["é"]},"b":[true,0.5,"/",null]}"#
)]
fn a_text_is_written_in_canonical_form(#[case] text: &str, #[case] canonical: &str) {
    assert!(agrees(text));
    assert_eq!(read(text).unwrap().1, canonical);
}

#[rstest]
#[case::nothing("")]
#[case::more_than_a_value("{} {}")]
#[case::a_comma_at_the_end("[1,]")]
#[case::no_comma("[1 2]")]
#[case::no_name("{1:2}")]
#[case::no_value(r#"{"a"}"#)]
#[case::another_bracket("[1}")]
#[case::an_open_string("\"a")]
#[case::a_line_break_in_a_string("\"a\n\"")]
#[case::a_sign_in_an_escape(r#""\u+061""#)]
#[case::an_unknown_escape(r#""\x61""#)]
#[case::a_zero_before("01")]
#[case::no_digit_before(".5")]
#[case::no_digit_after("5.")]
#[case::a_plus("+5")]
#[case::minus("-")]
#[case::minus_zero("-0")]
#[case::a_word("nul")]
#[case::a_number_that_changes("0.10000000000000000001")]
#[case::a_name_twice(r#"{"a":1,"b":2,"a":3}"#)]
#[case::a_name_twice_in_a_row(r#"{"a":1,"a":1}"#)]
fn other_texts_are_left_to_the_other_reader(#[case] text: &str) {
    assert!(read(text).is_none());
}

#[test]
fn the_other_reader_reads_deep_values() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(agrees(&nested(MAX_DEPTH)) && read(&nested(MAX_DEPTH + 1)).is_none());
}
