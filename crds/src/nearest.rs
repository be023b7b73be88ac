//! The nearest name, for messages about one that is unknown.

use strsim::normalized_damerau_levenshtein;

/// How alike two names must be, from 0 to 1, to be taken for a slip of the pen.
const ALIKE: f64 = 0.6;

/// Longer names are compared by their beginning: the effort grows with the product of the lengths.
const MAX_CHARS: usize = 64;

/// The candidate that is most like `name`, or nothing where none is much like it. Case and the signs between
/// words count little: `processRefund` is near `process_refund`.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = normalized_damerau_levenshtein(&name, &plain(candidate));
        if likeness >= ALIKE && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// ` Did you mean "x"?` where something is near, else nothing: the end of a sentence.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!(" Did you mean {near:?}?")).unwrap_or_default()
}

fn plain(name: &str) -> String {
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
    fn the_nearest_of_the_tools(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(name, ["verify_identity", "process_refund"]), expected);
    }

    #[test]
    fn the_end_of_a_sentence() {
        assert_eq!(did_you_mean("doc", ["docs"]), " Did you mean \"docs\"?");
        assert_eq!(did_you_mean("doc", []), "");
    }
}
