//! Finds the text of the arguments of calls in a body. A parsed value would lose duplicate keys and the digits of large numbers.

use serde_json::Value;

/// Returns the text of the `input` of each block, in order. A block without `input` has an empty text. The body may be invalid JSON.
pub(crate) fn inputs(body: &str) -> Vec<&str> {
    let content = value_of(body, "content").unwrap_or_default();
    items(content).map(|block| value_of(block, "input").unwrap_or_default()).collect()
}

/// Returns the body with `{}` in place of each `input` that cannot be parsed, because it is not JSON or holds a number out of range.
pub(crate) fn without_unparsable_inputs(body: &str) -> String {
    let mut kept = String::with_capacity(body.len());
    let mut at = 0;
    for input in inputs(body).into_iter().filter(|input| serde_json::from_str::<Value>(input).is_err()) {
        // The input is a slice of the body, so the difference of their addresses is its offset.
        let start = input.as_ptr().addr().saturating_sub(body.as_ptr().addr());
        let Some(before) = body.get(at..start).filter(|_| !input.is_empty()) else { continue };
        kept.push_str(before);
        kept.push_str("{}");
        at = start + input.len();
    }
    kept.push_str(body.get(at..).unwrap_or_default());
    kept
}

/// Returns the value of a key of an object. Of duplicate keys, the last one counts, as in a parser.
fn value_of<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let mut found = None;
    let mut parts = parts(object);
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        if serde_json::from_str::<String>(name).is_ok_and(|name| name == key) {
            found = Some(value);
        }
    }
    found
}

/// Returns the items of a list.
fn items(list: &str) -> impl Iterator<Item = &str> {
    parts(list)
}

/// Returns the parts of an object or a list: its items, or its keys and values alternately.
fn parts(outer: &str) -> impl Iterator<Item = &str> {
    let mut rest = outer.trim_start().get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | ':'));
        let (value, after) = rest.split_at_checked(value_length(rest))?;
        rest = after;
        (!value.is_empty()).then_some(value)
    })
}

/// Returns the length of the value at the beginning of `text`, in bytes. Returns 0 at the end of the enclosing value.
fn value_length(text: &str) -> usize {
    let mut open = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            if !in_string && open == 0 {
                return at + 1;
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => open += 1,
            b'}' | b']' if open > 0 => {
                open -= 1;
                if open == 0 {
                    return at + 1;
                }
            }
            b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' if open == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::spaced(r#" { "content" : [ { "input" : { "a" : 1 } , "id":"x" } , {"text":"]}"} ] , "x" : 1 }"#, &[r#"{ "a" : 1 }"#, ""])]
    #[case::twice(r#"{"content":[{"input":{"a":1,"a":900}}]}"#, &[r#"{"a":1,"a":900}"#])]
    #[case::a_large_number(r#"{"content":[{"input":{"order":18446744073709551616}}]}"#, &[r#"{"order":18446744073709551616}"#])]
    #[case::the_last_duplicate_counts(r#"{"content":[{"input":1,"inp\u0075t":{}}]}"#, &["{}"])]
    #[case::in_a_text(r#"{"a":"\"content\":[{\"input\":1}]","content":[]}"#, &[])]
    #[case::deeper_ones_do_not_count(r#"{"x":{"content":[{"input":1}]},"content":[{"y":{"input":2}}]}"#, &[""])]
    #[case::none("{}", &[])]
    #[case::no_object("[1]", &[])]
    fn inputs_returns_the_text_of_arguments(#[case] body: &str, #[case] expected: &[&str]) {
        assert_eq!(inputs(body), expected);
    }

    proptest! {
        #[test]
        fn inputs_returns_the_same_values_as_a_parser(texts in proptest::collection::vec(".{0,12}", 0..5), pretty: bool) {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"a": [text], "input": {text.as_str(): [text, {}, 1.5]}})).collect();
            let body = json!({"content": blocks, "z": texts});
            let body = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
            let found: Vec<Value> = inputs(&body).iter().map(|input| serde_json::from_str(input).unwrap()).collect();
            let parsed: Vec<Value> = blocks.iter().map(|block| block["input"].clone()).collect();
            prop_assert_eq!(found, parsed);
        }

        #[test]
        fn only_unparsable_inputs_are_replaced(n in 0..4_usize, readable: bool, text in ".{0,12}") {
            let blocks: Vec<Value> = (0..n).map(|_| json!({"a": text, "input": {"b": 1}, "c": [text]})).collect();
            let body = json!({"content": blocks, "z": text}).to_string();
            let written = body.replace(r#"{"b":1}"#, if readable { r#"{"b":1}"# } else { r#"{"b":1e999}"# });
            let expected = body.replace(r#"{"b":1}"#, if readable { r#"{"b":1}"# } else { "{}" });
            prop_assert_eq!(without_unparsable_inputs(&written), expected);
        }

        #[test]
        fn nothing_panics(body in "[\\[\\]{}\",:\\\\ a1é]{0,60}", input in "[\\[\\]{}\",:\\\\ a1é]{0,20}") {
            let _ = inputs(&body);
            let _ = without_unparsable_inputs(&format!(r#"{{"content":[{{"input":{input}}}{body}"#));
        }
    }
}
