//! Joins sentences into a list of bounded size.

use bloomery_crds::text::bounded;

/// The maximum size of a list in a condition message, in bytes. Leaves room for a few words before it.
pub const MAX_LIST_BYTES: usize = 960;

/// The space for the note that says how many sentences were omitted, in bytes.
const SUFFIX_BYTES: usize = 24;

/// Joins as many whole sentences as fit into `max_bytes`, and appends the number of the omitted ones. The first sentence
/// is always included, shortened if necessary.
pub fn join_sentences<S: AsRef<str>>(sentences: &[S], max_bytes: usize) -> String {
    let spaces = sentences.len().saturating_sub(1);
    let total = spaces + sentences.iter().map(|sentence| sentence.as_ref().len()).sum::<usize>();
    let room = if total <= max_bytes { max_bytes } else { max_bytes.saturating_sub(SUFFIX_BYTES) };
    let mut text = String::new();
    for (at, sentence) in sentences.iter().map(AsRef::as_ref).enumerate() {
        let fits = text.len() + " ".len() + sentence.len() <= room;
        if !fits && at > 0 {
            return format!("{text} And {} more.", sentences.len() - at);
        }
        if at > 0 {
            text.push(' ');
        }
        text.push_str(&bounded(sentence, room));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::none(&[], 40, "")]
    #[case::all(&["One is wrong.", "Two is wrong."], 40, "One is wrong. Two is wrong.")]
    #[case::all_and_not_a_byte_more(&["One is wrong.", "Two is wrong."], 27, "One is wrong. Two is wrong.")]
    #[case::some(&["One is wrong.", "Two is wrong.", "Three is wrong."], 42, "One is wrong. And 2 more.")]
    #[case::the_first_is_too_long(&["One is wrong, and much so.", "Two."], 30, "One… And 1 more.")]
    fn only_whole_sentences_are_joined(#[case] sentences: &[&str], #[case] max: usize, #[case] expected: &str) {
        assert_eq!(join_sentences(sentences, max), expected);
    }

    proptest! {
        #[test]
        fn the_list_is_never_longer_than_the_maximum(sentences in prop::collection::vec(".{0,40}", 0..9), max in 32_usize..200) {
            prop_assert!(join_sentences(&sentences, max).len() <= max);
        }
    }
}
