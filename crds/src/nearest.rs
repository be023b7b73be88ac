//! Suggestions for messages about an unknown name.

use strsim::{damerau_levenshtein, normalized_damerau_levenshtein};

/// The smallest similarity, from 0 to 1, at which a name counts as a misspelling of another.
const MIN_SIMILARITY: f64 = 0.6;

/// The smallest similarity of a name that is probably a typing error of another.
const MIN_SIMILARITY_OF_TYPO: f64 = 0.8;

/// The fewest characters of a prefix that is compared.
const MIN_PREFIX_CHARS: usize = 5;

/// The number of characters of a name that are compared. The effort grows with the product of the lengths.
const MAX_CHARS: usize = 64;

/// Returns the end of a clause about an unknown name: ` (did you mean "x"?)`, or an empty text without a similar name.
pub fn suggestion(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
}

/// Returns the candidate that is most similar to `name`, or `None` if none is similar. Only letters and digits are compared, and
/// case is ignored: `processRefund` equals `process_refund`.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = normalize(name);
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let similarity = normalized_damerau_levenshtein(&name, &normalize(candidate));
        if similarity >= MIN_SIMILARITY && best.is_none_or(|(most, _)| similarity > most) {
            best = Some((similarity, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the beginning of a candidate of which `prefix` is probably a typing error: `delete_` for `delte_`. Shorter prefixes, such as
/// `get_`, are words of their own.
pub fn nearest_prefix<'a>(prefix: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = prefix.chars().count();
    if !(MIN_PREFIX_CHARS..=MAX_CHARS).contains(&length) {
        return None;
    }
    let prefix = prefix.to_lowercase();
    let is_typo = |beginning: &&str| {
        beginning.chars().next_back() == prefix.chars().next_back()
            && damerau_levenshtein(&prefix, &beginning.to_lowercase()) == 1
    };
    let beginnings = |candidate: &'a str| {
        let ends = candidate.char_indices().map(|(at, c)| at + c.len_utf8()).skip(length - 2).take(3);
        ends.filter_map(move |end| candidate.get(..end))
    };
    candidates.into_iter().flat_map(beginnings).find(is_typo)
}

/// Returns whether a name is probably a typing error of another.
pub fn is_near(name: &str, other: &str) -> bool {
    normalized_damerau_levenshtein(&normalize(name), &normalize(other)) >= MIN_SIMILARITY_OF_TYPO
}

/// Returns whether a name differs from another in at most one letter or digit, or in two neighbours that are swapped.
pub fn is_one_slip(name: &str, other: &str) -> bool {
    damerau_levenshtein(&normalize(name), &normalize(other)) <= 1
}

/// Returns whether two names differ only in their case, or in characters that are no letters and digits.
pub fn has_same_letters(name: &str, other: &str) -> bool {
    normalize(name) == normalize(other)
}

/// Returns the end of a message about an unknown name: ` Did you mean "x"?` if a candidate is similar, else an empty text.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!(" Did you mean {near:?}?")).unwrap_or_default()
}

fn normalize(name: &str) -> String {
    name.chars().take(MAX_CHARS).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_slip("proces_refund", Some("process_refund"))]
    #[case::another_style("processRefund", Some("process_refund"))]
    #[case::swapped("verify_idnetity", Some("verify_identity"))]
    #[case::something_else("send_email", None)]
    #[case::nothing("", None)]
    fn the_most_similar_tool_is_found(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(name, ["verify_identity", "process_refund"]), expected);
    }

    #[rstest]
    #[case::a_slip("proces_refund", true, false)]
    #[case::another_style("ProcessRefund", true, true)]
    #[case::another_word("process_return", false, false)]
    fn names_are_near_or_the_same(#[case] name: &str, #[case] near: bool, #[case] same: bool) {
        assert_eq!((is_near(name, "process_refund"), has_same_letters(name, "process_refund")), (near, same));
    }

    #[rstest]
    #[case::a_letter_is_missing("delte_", Some("delete_"))]
    #[case::swapped("sned_", Some("send_"))]
    #[case::another_letter("semd_", Some("send_"))]
    #[case::another_case("Delte_", Some("delete_"))]
    #[case::the_same("send_", None)]
    #[case::another_word("wipe_", None)]
    #[case::a_short_word("set_", None)]
    #[case::nothing("", None)]
    fn a_misspelt_prefix_is_found(#[case] prefix: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest_prefix(prefix, ["get_payees", "delete_email", "send_money", "s"]), expected);
    }

    #[test]
    fn a_suggestion_continues_a_sentence() {
        assert_eq!(did_you_mean("doc", ["docs"]), " Did you mean \"docs\"?");
        assert_eq!(did_you_mean("doc", []), "");
    }
}
