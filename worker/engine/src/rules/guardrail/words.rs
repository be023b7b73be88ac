//! The words of a guardrail, without the marks of Markdown.

/// The marks of emphasis in Markdown, the longer ones first.
const MARKS: [&str; 4] = ["**", "__", "*", "_"];

/// Returns the words of a sentence, without marks of emphasis around one or more of them: `_never_`, `**Never use** slang`. Code keeps its
/// marks: `_a_` in backquotes.
pub(crate) fn split_words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    while let Some((mark, from, to)) = find_emphasis(&words) {
        if let Some(first) = words.get_mut(from) {
            let word = *first;
            *first = without_punctuation(word).strip_prefix(mark).unwrap_or(word);
        }
        if let Some(last) = words.get_mut(to) {
            let word = *last;
            *last = without_punctuation(word).strip_suffix(mark).unwrap_or(word);
        }
    }
    words
}

/// Returns a mark, and the positions of the words that begin and end with it.
fn find_emphasis(words: &[&str]) -> Option<(&'static str, usize, usize)> {
    let is_text = |rest: &str| rest.contains(char::is_alphanumeric);
    MARKS.into_iter().find_map(|mark| {
        let begins = |word: &&str| without_punctuation(word).strip_prefix(mark).is_some_and(is_text);
        let ends = |word: &&str| without_punctuation(word).strip_suffix(mark).is_some_and(is_text);
        let from = words.iter().position(begins)?;
        let length = words.get(from..)?.iter().position(ends)?;
        Some((mark, from, from + length))
    })
}

/// Returns whether a word is one of others, in any case.
pub(crate) fn is_any_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns a word without quotes and punctuation around it.
pub(crate) fn plain(word: &str) -> &str {
    word.trim_matches(|c: char| c == '`' || is_punctuation(c))
}

fn without_punctuation(word: &str) -> &str {
    word.trim_matches(is_punctuation)
}

fn is_punctuation(c: char) -> bool {
    ".,;:!?\"'()".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_word("Never _ever_ lie", "Never ever lie")]
    #[case::several_words("**Never use** *slang or jargon*.", "Never use slang or jargon")]
    #[case::both_kinds("***Never*** lie", "Never lie")]
    #[case::a_word_in_quotes("say \"_yes_\" to (*anyone*)", "say yes to anyone")]
    #[case::a_prefix_of_names("Never use *send_**", "Never use send_*")]
    #[case::names("Never use send_* or delete_all", "Never use send_* or delete_all")]
    #[case::code("Never use `_reset_`", "Never use `_reset_`")]
    #[case::a_mark_alone("Never run * or **", "Never run * or **")]
    #[case::one_end("Never use _reset twice", "Never use _reset twice")]
    fn marks_of_emphasis_are_no_part_of_words(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(split_words(text).join(" "), expected);
    }

    proptest! {
        #[test]
        fn every_text_has_words(text in "[*_a. `]{0,30}") {
            prop_assert!(split_words(&text).iter().all(|word| !word.is_empty()));
        }
    }
}
