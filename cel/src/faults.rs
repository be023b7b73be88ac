//! All errors of a condition at once, for its author.

use crate::dialect::Dialect;
use crate::error::Error;
use crate::limits::{self, Error as LimitError};
use crate::parse::parse;
use crate::token::{Token, Tokens, is_word_char};
use std::ops::Range;

/// The maximum number of errors of tokens and brackets that [`faults`] reports. It reads the tokens again for each.
const MAX_MENDED: usize = 16;

/// Returns the errors of a condition: those of its tokens and brackets, and the first syntax error of each side of `&&` and `||` outside of
/// brackets. Returns none for exactly the conditions that [`check`](crate::check) and [`Program::parse`](crate::Program::parse)
/// accept.
pub fn faults(text: &str, dialect: Dialect) -> Vec<Error> {
    let (mended, found) = mend(text);
    let mut faults: Vec<Error> = found.into_iter().map(Error::from).collect();
    let Some(mended) = mended else { return faults };
    let Err(first) = parse(&mended, dialect) else { return faults };
    let in_sides = faults_of_sides(&mended, dialect);
    let of_syntax = if in_sides.is_empty() { vec![first] } else { in_sides };
    faults.extend(of_syntax.into_iter().map(|error| not_after(error, text)));
    faults
}

/// Replaces the characters that are not part of CEL and the brackets without a partner, so that the rest can be parsed. No position
/// changes, because a missing bracket is added after the text. Returns no text if it has another error.
fn mend(text: &str) -> (Option<String>, Vec<LimitError>) {
    let (mut text, mut found) = (text.to_owned(), Vec::new());
    loop {
        let Err(error) = limits::check(&text) else { return (Some(text), found) };
        if found.len() == MAX_MENDED {
            return (None, found);
        }
        let (at, length, replacement) = match &error {
            // Probably meant as an operator.
            LimitError::Character { character: '=' | '&' | '|', at } => (*at, 1, "<".to_owned()),
            LimitError::Character { character, at } => (*at, character.len_utf8(), " ".repeat(character.len_utf8())),
            LimitError::Swapped { operator, write, at } => (*at, operator.len(), (*write).to_owned()),
            LimitError::Unbalanced { bracket: ')' | ']' | '}', at } => {
                (*at, 1, fitting_bracket(&text, *at).unwrap_or(' ').to_string())
            }
            LimitError::Unbalanced { bracket, at } => match missing_partner(&text, *bracket, *at) {
                // The line break ends a comment.
                Some(partner) => (text.len(), 0, format!("\n{partner}")),
                None => (*at, 1, " ".to_owned()),
            },
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

/// Returns the partner of an open bracket that is needed to parse the rest. A bracket that only groups is not needed.
fn missing_partner(text: &str, bracket: char, at: usize) -> Option<char> {
    let before = text.get(..at).unwrap_or_default().trim_end();
    let is_call = before.ends_with(|c| is_word_char(c) || matches!(c, ')' | ']'));
    match bracket {
        '(' if is_call => Some(')'),
        '[' => Some(']'),
        '{' => Some('}'),
        _ => None,
    }
}

/// Returns the closing bracket that fits in place of the one at a position.
fn fitting_bracket(text: &str, at: usize) -> Option<char> {
    let fits = |bracket: &char| {
        let mut other = text.to_owned();
        other.replace_range(at..=at, &bracket.to_string());
        !matches!(limits::check(&other), Err(LimitError::Unbalanced { at: again, .. }) if again == at)
    };
    [')', ']', '}'].into_iter().find(fits)
}

/// Moves an error whose place is after the end of the text to the end. [`mend`] adds brackets there.
fn not_after(error: Error, text: &str) -> Error {
    let end_line = text.matches('\n').count() + 1;
    let end_column = text.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    match error {
        Error::Syntax { message, line, column } if (line, column) > (end_line, end_column) => {
            let expected = message.rsplit_once(", found ").map_or(message.as_str(), |(expected, _)| expected);
            Error::Syntax { message: format!("{expected}, found the end"), line: end_line, column: end_column }
        }
        other => other,
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
    #[case::never_closed("(a = 1 && b >", &["'=' at byte 3", "the bracket '(' at byte 0 has no partner", "found the end (line 1, column 14)"])]
    #[case::never_closed_call("size(a >  // b", &["the bracket '(' at byte 4 has no partner", "an expression, found the end (line 1, column 15)"])]
    #[case::never_closed_list("a in ['x', && b => 1", &["\"=>\" at byte 16", "'[' at byte 5 has no partner", "found \"&&\" (line 1, column 12)"])]
    #[case::several_never_closed("a in [1, (b", &["'(' at byte 9 has no partner", "'[' at byte 5 has no partner"])]
    #[case::never_opened("a) > 1 && b >", &["the bracket ')' at byte 1 has no partner", "found the end (line 1, column 14)"])]
    #[case::closed_by_another("(a] && b >", &["the bracket ']' at byte 2 has no partner", "found the end (line 1, column 11)"])]
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
