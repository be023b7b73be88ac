//! Bounding of texts that people and other programs hand us.

/// Cuts `text` to at most `max` bytes, on a character boundary, and says so with an ellipsis.
pub fn bounded(text: &str, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| at + MARK.len() <= max).last().unwrap_or(0);
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

/// Why a value is not one line of at most `max` bytes, as the end of a sentence (`it ...`); nothing where it is.
/// The value itself is not told: it may be a secret in the wrong place.
pub fn line_fault(value: &str, max: usize) -> Option<String> {
    if value.len() > max {
        return Some(format!("has {} bytes, and at most {max} are taken", value.len()));
    }
    if value.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        return Some("is more than one line".to_owned());
    }
    value.contains(char::is_control).then(|| "holds a control character".to_owned())
}

/// Whether a character does something to a terminal or to the text round it, instead of standing there: a control
/// character, one that turns the direction of what follows, or one that ends a line and is no line feed.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether nobody would see a character, or not as what it is: it steers, or has no shape. Scripts and emoji need some of
/// those that have none, so only what a person decides about shows them.
pub fn is_hidden(c: char) -> bool {
    steers(c)
        || matches!(
            c,
            '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::{bounded, is_hidden, line_fault, steers};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_longer_than_asked_and_a_prefix(text in ".*", max in 3_usize..64) {
            let cut = bounded(&text, max);
            prop_assert!(cut.len() <= max.max(3));
            prop_assert!(cut == text || text.starts_with(cut.trim_end_matches('…')));
        }
    }

    #[test]
    fn what_turns_a_text_round_steers_and_what_joins_its_characters_is_only_hidden() {
        for c in ['\u{1b}', '\u{9b}', '\n', '\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}', '\u{61c}'] {
            assert!(steers(c) && is_hidden(c), "{c:?}");
        }
        for c in ['\u{200d}', '\u{ad}', '\u{feff}', '\u{e0041}'] {
            assert!(!steers(c) && is_hidden(c), "{c:?}");
        }
        assert!(" aä\u{645}語\u{1f600}".chars().all(|c| !steers(c) && !is_hidden(c)));
    }

    #[test]
    fn leaves_short_texts_alone() {
        assert_eq!(bounded("ok", 3), "ok");
        assert_eq!(bounded("okay then", 6), "oka…");
    }

    #[test]
    fn a_line_is_one_line_of_bounded_length_without_control_characters() {
        assert_eq!(line_fault("https://docs.example.com/ä", 512), None);
        for value in ["a\nb", "a\rb", "a\u{2028}b", "a\u{1b}[2J", "a\tb", "a\0"] {
            assert!(line_fault(value, 512).is_some(), "{value:?}");
        }
        assert_eq!(line_fault("abcd", 3).unwrap(), "has 4 bytes, and at most 3 are taken");
    }
}
