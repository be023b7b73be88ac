//! Comparisons with a number in sentences.

use crate::rules::guardrail::plain;

/// A comparison with a number within a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared<'a> {
    /// The compared field, if it is a name.
    pub(super) field: Option<&'a str>,
    /// The operator in CEL.
    pub(super) operator: &'static str,
    pub(super) number: &'a str,
}

/// Returns the first comparison with a number, such as `amount > 500`, `>500` or `500 <= amount`.
pub(super) fn find_comparison(text: &str) -> Option<Compared<'_>> {
    let is_sign = |c: char| "<>=!≤≥≠".contains(c);
    let mut offset = 0;
    while let Some(rest) = text.get(offset..) {
        let start = offset + rest.find(is_sign)?;
        let (before, rest) = text.split_at_checked(start)?;
        let length = rest.find(|c: char| !is_sign(c)).unwrap_or(rest.len());
        let (signs, after) = rest.split_at_checked(length)?;
        offset = start + signs.len();
        // An arrow (`->`) compares nothing, and neither does the `=` of an address (`?id=5`).
        let Some(operator) = read_operator(signs).filter(|_| !before.ends_with('-')) else { continue };
        if signs == "=" && !after.starts_with(char::is_whitespace) {
            continue;
        }
        let left = before.split_whitespace().next_back().map(plain).unwrap_or_default();
        let right = after.split_whitespace().next().map(plain).unwrap_or_default();
        if begins_a_number(right) {
            return Some(Compared { field: is_name(left).then_some(left), operator, number: right });
        }
        if begins_a_number(left) && is_name(right) {
            return Some(Compared { field: Some(right), operator: swap_sides(operator), number: left });
        }
    }
    None
}

/// Returns the first comparison in words, such as `amount over 500` or `amount must not exceed 500`. Its field must be an argument:
/// `refunds over $500` is prose. `argument` returns the argument that the word at a position means.
pub(super) fn find_comparison_in_words<'a>(
    words: &[&'a str],
    argument: impl Fn(usize) -> Option<&'a str>,
) -> Option<Compared<'a>> {
    (0..words.len()).find_map(|at| {
        let field = argument(at)?;
        let (operator, rest) = read_words(words.get(at + 1..)?)?;
        let number = *rest.first()?;
        begins_a_number(number).then_some(Compared { field: Some(field), operator, number })
    })
}

/// Returns the operator of a comparison in words, such as `more than 500`, and the words after it.
pub(super) fn read_words<'w, 'a>(words: &'w [&'a str]) -> Option<(&'static str, &'w [&'a str])> {
    let (is_negated, words) = split_verbs(words);
    let (operator, rest) = match words {
        ["over" | "above" | "exceeding" | "exceeds" | "exceed", rest @ ..]
        | ["more" | "greater" | "higher" | "larger" | "bigger", "than", rest @ ..] => (">", rest),
        ["under" | "below", rest @ ..] | ["less" | "lower" | "smaller", "than", rest @ ..] => ("<", rest),
        ["at", "least", rest @ ..] => (">=", rest),
        // The upper end of the range. A negative number is found elsewhere.
        ["between", least, "and" | "to", rest @ ..] if begins_a_number(least) => ("<=", rest),
        ["at", "most", rest @ ..] | ["up", "to", rest @ ..] => ("<=", rest),
        _ => return None,
    };
    Some((if is_negated { negate(operator) } else { operator }, rest))
}

/// Returns whether the words before a comparison negate it, and the words of the comparison: `more than 500` of `must be no more than 500`.
fn split_verbs<'w, 'a>(words: &'w [&'a str]) -> (bool, &'w [&'a str]) {
    const VERBS: [&str; 14] =
        ["is", "are", "has", "have", "must", "should", "shall", "may", "can", "do", "does", "to", "be", "of"];
    const NEGATIONS: [&str; 4] = ["no", "not", "never", "cannot"];
    let is_before = |word: &&str| VERBS.contains(word) || NEGATIONS.contains(word);
    let end = words.iter().position(|word| !is_before(word)).unwrap_or(words.len());
    let (before, after) = words.split_at_checked(end).unwrap_or((words, &[]));
    (before.iter().any(|word| NEGATIONS.contains(word)), after)
}

/// Returns the operator that is true where another is false.
fn negate(operator: &'static str) -> &'static str {
    match operator {
        ">" => "<=",
        "<" => ">=",
        ">=" => "<",
        "<=" => ">",
        other => other,
    }
}

/// Returns the operator in CEL, or nothing if the signs are no comparison.
fn read_operator(signs: &str) -> Option<&'static str> {
    Some(match signs {
        ">" => ">",
        "<" => "<",
        ">=" | "=>" | "≥" => ">=",
        "<=" | "=<" | "≤" => "<=",
        "==" | "=" => "==",
        "!=" | "≠" => "!=",
        _ => return None,
    })
}

/// Returns the operator of the same comparison with its sides swapped.
fn swap_sides(operator: &'static str) -> &'static str {
    match operator {
        ">" => "<",
        "<" => ">",
        ">=" => "<=",
        "<=" => ">=",
        other => other,
    }
}

pub(super) fn begins_a_number(word: &str) -> bool {
    word.trim_start_matches(['-', '$', '€', '£']).starts_with(|c: char| c.is_ascii_digit())
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
