//! All errors of a condition at once, for its author.

use crate::dialect::Dialect;
use crate::error::Error;
use crate::limits::{self, Error as LimitError};
use crate::parse::parse;
use crate::token::{Token, Tokens};
use std::ops::Range;

/// Returns the errors of a condition: those of its tokens, and the first syntax error of each side of `&&` and `||` outside of
/// brackets. Returns none for exactly the conditions that [`check`](crate::check) and [`Program::parse`](crate::Program::parse)
/// accept.
pub fn faults(text: &str, dialect: Dialect) -> Vec<Error> {
    let (mended, found) = mend(text);
    let mut faults: Vec<Error> = found.into_iter().map(Error::from).collect();
    let Some(mended) = mended else { return faults };
    let Err(first) = parse(&mended, dialect) else { return faults };
    let in_sides = faults_of_sides(&mended, dialect);
    faults.extend(if in_sides.is_empty() { vec![first] } else { in_sides });
    faults
}

/// Replaces the characters that are not part of CEL, so that the rest can be parsed. The positions stay the same. Returns no text
/// if it has another error.
fn mend(text: &str) -> (Option<String>, Vec<LimitError>) {
    let (mut text, mut found) = (text.to_owned(), Vec::new());
    loop {
        let Err(error) = limits::check(&text) else { return (Some(text), found) };
        let (at, length, replacement) = match &error {
            // Probably meant as an operator.
            LimitError::Character { character: '=' | '&' | '|', at } => (*at, 1, "<".to_owned()),
            LimitError::Character { character, at } => (*at, character.len_utf8(), " ".repeat(character.len_utf8())),
            LimitError::Swapped { operator, write, at } => (*at, operator.len(), (*write).to_owned()),
            _ => {
                // The other error may be a consequence of a character.
                if found.is_empty() {
                    found.push(error);
                }
                return (None, found);
            }
        };
        text.replace_range(at..at + length, &replacement);
        found.push(error);
    }
}

/// Returns the syntax error of each side of `&&` and `||` outside of brackets. Returns none for a text with `?` outside of brackets,
/// because its branches have sides of their own.
fn faults_of_sides(text: &str, dialect: Dialect) -> Vec<Error> {
    let (mut depth, mut begin, mut faults) = (0_usize, 0, Vec::new());
    for (at, token) in Tokens::new(text).flatten() {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            Token::Question if depth == 0 => return Vec::new(),
            Token::And | Token::Or if depth == 0 => {
                let operator = text.get(at..at + 2).unwrap_or_default();
                faults.extend(fault_of_side(text, begin..at, dialect).map(|error| before(error, operator)));
                begin = at + 2;
            }
            _ => {}
        }
    }
    faults.extend(fault_of_side(text, begin..text.len(), dialect));
    faults
}

/// Returns the syntax error of a part of a text, with its place in the text.
fn fault_of_side(text: &str, range: Range<usize>, dialect: Dialect) -> Option<Error> {
    let blank: String = text.get(..range.start)?.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    let side = text.get(range.clone())?;
    parse(&(blank + if range.end == text.len() { side } else { side.trim_end() }), dialect).err()
}

/// Returns the error of a side with the operator after it in place of the end of the text.
fn before(error: Error, operator: &str) -> Error {
    match error {
        Error::Syntax { message, line, column } => {
            let message = message.replace("found the end", &format!("found {operator:?}"));
            Error::Syntax { message, line, column }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::valid("a == 1 && (b > 2 || has(args.c))", &[])]
    #[case::one("a >", &["expected an expression, found the end (line 1, column 4)"])]
    #[case::single_equals("a = 1 && b = 2", &["'=' at byte 2 is not part of CEL: write == to compare", "'=' at byte 11"])]
    #[case::swapped("amount => 5 && b =<6", &["\"=>\" at byte 7 is not an operator of CEL: write >=", "\"=<\" at byte 17 is not an operator of CEL: write <="])]
    #[case::each_side("a > &&\n b c || d.", &[
        "expected an expression, found \"&&\" (line 1, column 4)", "found \"c\" (line 2, column 4)", "name of a field, found the end (line 2, column 11)",
    ])]
    #[case::characters_and_syntax("a = 1 && b >", &["'=' at byte 2", "found the end (line 1, column 13)"])]
    #[case::a_single_ampersand("a & b", &["'&' at byte 2"])]
    #[case::functions("lower(a) == 'x' && upper(b) == 'Y'", &["no function lower()", "no function upper()"])]
    #[case::within_brackets("(a b) && c", &["expected ')', found \"b)\""])]
    #[case::a_conditional("a ? b && : c", &["expected an expression, found \":\""])]
    #[case::unbalanced("(a = 1", &["'=' at byte 3"])]
    #[case::empty("", &["the condition is empty"])]
    fn all_errors_are_returned_in_their_order(#[case] text: &str, #[case] expected: &[&str]) {
        let faults: Vec<String> = faults(text, Dialect::Call).iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.contains(expected), "{expected}: {faults:#?}");
        }
    }

    proptest! {
        #[test]
        fn exactly_the_valid_conditions_have_no_faults(text in r"([ab.,:?!&|=<>+()\[\]'é 1-]|&&|\|\||==|size\(|has\()*") {
            let valid = limits::check(&text).is_ok() && Program::parse(&text).is_ok();
            prop_assert_eq!(faults(&text, Dialect::Call).is_empty(), valid);
            prop_assert_eq!(mend(&text).1.is_empty(), limits::check(&text).is_ok());
        }
    }
}
