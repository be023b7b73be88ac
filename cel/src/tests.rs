//! Tests of parsing and evaluation. The tests of conditions are in the engine.

use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn evaluate(text: &str) -> Result<bool, Error> {
    let variables = json!({
        "a": 1, "b": 2, "c": 3, "yes": true, "no": false, "text": "x", "xs": [1, 2], "object": {"as": 4, "b": {"c": 5}},
    });
    let Value::Object(variables) = variables else { unreachable!() };
    Program::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&variables, &[])
}

#[rstest]
#[case::multiplication_before_addition("1 + 2 * 3 == 7 && 2 * 3 + 1 == 7")]
#[case::brackets("(1 + 2) * 3 == 9")]
#[case::subtraction_associates_to_the_left("10 - 3 - 2 == 5 && 20 / 5 / 2 == 2 && 20 % 7 * 2 == 12")]
#[case::addition_before_comparison("1 + 1 < 1 + 2 && 1 + 1 in xs")]
#[case::comparison_associates_to_the_left("1 < 2 == true && 1 in xs == true")]
#[case::comparison_before_and("a == 1 && b == 2")]
#[case::and_before_or("yes || no && no")]
#[case::or_before_conditional("no || no ? no : yes")]
#[case::conditional_associates_to_the_right("no ? no : no ? no : yes")]
#[case::sign_before_multiplication("-a * 2 == -2 && 2 * -1 == -2 && 1 - -1 == 2 && 1--1 == 2")]
#[case::not_before_and("!no && yes && !!yes")]
#[case::several_signs("--a == 1 && ---a == -1 && --1 == 1")]
#[case::member_before_sign("-object.b.c == -5 && -xs[0] == -1")]
#[case::nested_macros("xs.all(x, xs.exists(y, x == y)) && xs.all(x, xs.map(x, x + 1) == [2, 3] && x > 0)")]
#[case::an_item_hides_an_outer_one("xs.map(x, xs.filter(x, x > 1)) == [[2], [2]]")]
fn operators_bind_as_in_cel(#[case] text: &str) {
    assert_eq!(evaluate(text), Ok(true));
}

#[rstest]
#[case::hexadecimal("0x1F == 31 && 0XffU == 255u && -0x10 == -16")]
#[case::the_smallest_and_the_largest("-9223372036854775808 < 9223372036854775807 && 18446744073709551615u > 0u")]
#[case::doubles("1.5e3 == 1500.0 && .5 == 0.5 && 1e-2 == 0.01 && 2E+1 == 20.0 && -1.5 < 0.0")]
#[case::an_index("xs[1] == 2")]
#[case::quotes(r#"'"' == "\"" && "'" == '\''"#)]
#[case::escapes(r"'\x41\u00e9\U0001F600\101\n' == 'Aé😀A
'".replace('\n', r"\n"))]
#[case::control_characters(r"size('\a\b\f\r\t\v\\\?\`') == 9")]
#[case::raw_strings(r"r'\n' == '\\n' && R'\' == '\\'")]
#[case::long_strings("'''a\n'b''' == 'a\\n\\'b' && size(\"\"\"\n\"\"\") == 1")]
#[case::comments("yes // && no\n && yes // no")]
#[case::a_trailing_comma("size([1, 2,]) == 2 && size([]) == 0")]
#[case::reserved_words_as_fields("object.as == 4")]
#[case::bytes("bytes('é').size() == 2 && size('é') == 1")]
fn literals_have_the_values_of_cel(#[case] text: impl AsRef<str>) {
    assert_eq!(evaluate(text.as_ref()), Ok(true));
}

#[rstest]
#[case::nothing("", 1, 1, "expected an expression, found the end")]
#[case::the_end("a >", 1, 4, "expected an expression, found the end")]
#[case::an_operator_too_many("a > > b", 1, 5, "expected an expression, found \">\"")]
#[case::two_expressions("a b", 1, 3, "expected the end of the expression, found \"b\"")]
#[case::a_reserved_word("yes &&\n  return", 2, 3, "expected an expression, found \"return\"")]
#[case::characters_count_not_bytes("'é' a", 1, 5, "expected the end of the expression, found \"a\"")]
#[case::no_field("a. > b", 1, 4, "expected the name of a field, found \">\"")]
#[case::a_word_as_field("a.true", 1, 3, "expected the name of a field, found \"true\"")]
#[case::an_open_bracket("(a", 1, 3, "expected ')', found the end")]
#[case::an_open_list("[a b]", 1, 4, "expected a comma or ']', found \"b]\"")]
#[case::half_a_conditional("yes ? a", 1, 8, "expected ':', found the end")]
#[case::mixed_signs("-!a", 1, 2, "expected an expression, found \"!a\"")]
#[case::a_large_number("a > 9223372036854775808", 1, 5, "expected a number of 64 bits, found \"9223372036854775\"")]
#[case::a_large_unsigned("a > 18446744073709551616u", 1, 5, "expected a number of 64 bits, found \"1844674407370955\"")]
#[case::three_arguments_of_a_macro("xs.all(x, y, z)", 1, 12, "expected the end of all(item, ...), found \",\"")]
fn a_syntax_error_names_its_line_and_column(
    #[case] text: &str,
    #[case] line: usize,
    #[case] column: usize,
    #[case] message: &str,
) {
    assert_eq!(Program::parse(text), Err(Error::Syntax { message: message.into(), line, column }));
}

#[rstest]
#[case::a_name_after_digits("a > 1x", LimitError::BadNumber { at: 4 })]
#[case::digits_with_underscores("1_000 > a", LimitError::BadNumber { at: 0 })]
#[case::no_hexadecimal_digit("0x", LimitError::BadNumber { at: 0 })]
#[case::beyond_all_doubles("1e999 > 1.0", LimitError::BadNumber { at: 0 })]
#[case::a_surrogate(r"'\ud800'", LimitError::BadString { at: 0 })]
fn invalid_tokens_are_refused(#[case] text: &str, #[case] error: LimitError) {
    assert_eq!(check(text), Err(error.clone()));
    assert_eq!(Program::parse(text), Err(Error::Limit(error)));
}

#[rstest]
#[case::brackets("(".repeat(5_000))]
#[case::lists("[".repeat(5_000))]
#[case::calls("size(".repeat(5_000))]
#[case::indexes("a[".repeat(5_000))]
#[case::conditionals("yes ? no : ".repeat(5_000))]
#[case::signs("-".repeat(5_000) + "a")]
#[case::nots("!".repeat(5_000) + "yes")]
#[case::sums("1+".repeat(5_000) + "1")]
#[case::selections("a".to_owned() + &".b".repeat(5_000))]
#[case::methods("a".to_owned() + &".size()".repeat(5_000))]
fn depth_is_bounded_without_the_check(#[case] text: String) {
    assert_eq!(Program::parse(&text), Err(Error::Unsupported("the condition is nested too deep".into())));
}

#[test]
fn a_long_chain_of_and_is_not_deep() {
    assert_eq!(evaluate(&vec!["yes"; 5_000].join(" && ")), Ok(true));
    assert_eq!(evaluate(&vec!["no"; 5_000].join(" || ")), Ok(false));
}

/// Generates the text of a fully bracketed expression over integers, and its value.
fn bracketed() -> impl Strategy<Value = (String, i64)> {
    let leaf = (0_i64..10).prop_map(|n| (n.to_string(), n));
    leaf.prop_recursive(5, 24, 2, |inner| {
        (inner.clone(), inner, 0_u8..3).prop_map(|((left, a), (right, b), operator)| match operator {
            0 => (format!("({left} + {right})"), a + b),
            1 => (format!("({left} - {right})"), a - b),
            _ => (format!("({left} * {right})"), a * b),
        })
    })
}

/// Generates an expression without brackets, and its value by the rules of precedence.
fn unbracketed() -> impl Strategy<Value = (String, i64)> {
    prop::collection::vec((0_u8..3, 0_i64..10), 1..8).prop_map(|row| {
        let mut words = Vec::new();
        let (mut total, mut term, mut sign) = (0, 0, 1);
        for (at, (operator, number)) in row.into_iter().enumerate() {
            match operator {
                _ if at == 0 => {
                    words.push(number.to_string());
                    term = number;
                }
                2 => {
                    words.push(format!("* {number}"));
                    term *= number;
                }
                operator => {
                    words.push(format!("{} {number}", if operator == 0 { "+" } else { "-" }));
                    total += sign * term;
                    (sign, term) = (if operator == 0 { 1 } else { -1 }, number);
                }
            }
        }
        (words.join(" "), total + sign * term)
    })
}

proptest! {
    #[test]
    fn brackets_decide_the_order((text, value) in bracketed()) {
        prop_assert_eq!(evaluate(&format!("{text} == {value}")), Ok(true));
    }

    #[test]
    fn precedence_decides_without_brackets((text, value) in unbracketed()) {
        prop_assert_eq!(evaluate(&format!("{text} == {value}")), Ok(true), "{}", text);
    }

    #[test]
    fn escaped_characters_are_decoded(text in ".{0,40}") {
        let variables = Map::from_iter([("text".to_owned(), Value::String(text.clone()))]);
        let escapes: Vec<String> = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
        let program = Program::parse(&format!("text == '{}'", escapes.concat())).unwrap();
        prop_assert_eq!(program.evaluate(&variables, &[]), Ok(true));
    }

    #[test]
    fn no_text_panics(text in r#"([a-z0-9.,:?!&|+<>=(){}\[\]'"\\ -]|has\(|\.all\(x,|'''|true| in | && )*"#) {
        let variables = Map::new();
        let _ = Program::parse(&text).map(|program| program.evaluate(&variables, &[]));
    }
}

#[test]
fn empty_objects_cost_work_too() {
    let variables = Map::from_iter([("xs".to_owned(), Value::Array(vec![json!({}); 250_000]))]);
    assert_eq!(Program::parse("xs == xs").unwrap().evaluate(&variables, &[]), Err(Error::Exhausted));
}

#[rstest]
#[case::lower_case("'HTTPS://Ä.X'.lowerAscii() == 'https://Ä.x'")]
#[case::a_pattern("'A-17'.matches('^A-[0-9]+$') && !'A-17'.matches('^[0-9]')")]
#[case::a_pattern_anywhere(r"text.matches('\\w') && 'a.b'.matches(r'a\.b')")]
#[case::a_host("host('HTTPS://Bit.ly/x') == 'bit.ly' && host('https://a.b:1/') in ['a.b']")]
#[case::a_domain("domain('Ada@Own.com') == 'own.com'")]
#[case::nested_macros("[[1, 2], [3]].all(row, row.exists(x, x > 1))")]
#[case::lists_as_an_item("xs.exists(lists, lists == 2)")]
fn text_functions_have_their_values(#[case] text: &str) {
    assert_eq!(evaluate(text), Ok(true));
}

/// Without a result, a rule holds or denies the call, in whatever form it is written.
#[rstest]
#[case::an_allowed_host("host('www.x.com') in ['x.com']")]
#[case::not_an_allowed_host("!(host('x.com') in ['x.com'])")]
#[case::a_blocked_host("host('//bit.ly') == 'bit.ly'")]
#[case::two_addresses("domain('a@own.com,x@other.com') != 'own.com'")]
#[case::a_number_has_no_host("host(a) == 'x'")]
#[case::no_list("'x' in lists.payees")]
#[case::a_list_has_no_source("fromUser(xs)")]
#[case::a_bool_has_no_source("fromTool(yes, 'x')")]
#[case::matches_of_a_number("a.matches('1')")]
fn what_does_not_parse_has_no_result(#[case] text: &str) {
    assert!(matches!(evaluate(text), Err(Error::Evaluation(_))), "{:?}", evaluate(text));
}

#[rstest]
#[case::a_computed_pattern("text.matches(text)", "the last argument of matches() must be a string in quotes")]
#[case::an_invalid_pattern("text.matches('(')", "the pattern \"(\" cannot be used: unclosed group")]
#[case::a_large_pattern("text.matches('(a{1000}){1000}')", "cannot be used: its program is larger than 262144 bytes")]
#[case::a_look_around("text.matches('(?=a)')", "the pattern \"(?=a)\" cannot be used: look-around")]
#[case::a_computed_tool("fromTool(text, text)", "the last argument of fromTool() must be a string in quotes")]
#[case::calls_of_any_tool("size(calls()) > 1", "calls() does not take these arguments")]
#[case::all_lists("size(lists) > 1", "write lists.name, or args.lists")]
#[case::host_as_a_method("text.host() == 'x'", "host() does not take these arguments")]
fn a_function_that_cannot_be_compiled_is_refused(#[case] text: &str, #[case] sentence: &str) {
    let error = Program::parse(text).unwrap_err().to_string();
    assert!(error.contains(sentence), "{error}");
}

#[test]
fn only_the_condition_of_a_step_reads_a_result_and_steps() {
    let text = "result.ok && args.id == steps.verify.args.id && steps['a b'].result == 1";
    assert_eq!(Program::parse(text).unwrap().variables().into_iter().collect::<Vec<_>>(), ["id", "result", "steps"]);
    let step = Program::parse_as(text, Dialect::Step).unwrap();
    assert_eq!(step.variables().into_iter().collect::<Vec<_>>(), ["id"]);
    let mut steps: Vec<&Node> = step.nodes().into_iter().filter(|node| matches!(node, Node::Step(_))).collect();
    steps.sort_by_key(|node| format!("{node:?}"));
    assert_eq!(steps, [&Node::Step("a b".into()), &Node::Step("verify".into())]);
}

#[test]
fn matching_costs_work() {
    let variables = Map::from_iter([("note".to_owned(), Value::String("x".repeat(60_000)))]);
    let program = Program::parse("[1, 2, 3, 4].all(x, note.matches('y') == false)").unwrap();
    assert_eq!(program.evaluate(&variables, &[]), Err(Error::Exhausted));
}
