//! Bounds texts from outside, and finds characters that are dangerous to display.

/// Returns `text`, cut to at most `max` bytes at a character boundary. A text that was cut ends in an ellipsis.
pub fn bounded(text: &str, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| at + MARK.len() <= max).last().unwrap_or(0);
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

/// Returns why a value is not a single line of at most `max` bytes, as the end of a sentence (`it ...`), or `None` if it
/// is one. The message does not contain the value, which may be a secret in the wrong field.
pub fn single_line_fault(value: &str, max: usize) -> Option<String> {
    if value.len() > max {
        return Some(format!("has {} bytes, and at most {max} are allowed", value.len()));
    }
    if value.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        return Some("is more than one line".to_owned());
    }
    value.contains(char::is_control).then(|| "holds a control character".to_owned())
}

/// Returns whether a character changes how a terminal shows the text around it: a control character, a character that
/// changes the direction of the text, or a line separator.
pub fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a reader cannot see a character: it alters the display or has no shape. Scripts and emoji need some of
/// the characters without a shape, so only texts that a person decides about are checked for them.
pub fn is_invisible(c: char) -> bool {
    alters_display(c)
        || matches!(
            c,
            '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Makes a sentence of a clause: begins it with a capital letter, and ends it with one full stop.
pub fn sentence(clause: &str) -> String {
    let clause = clause.trim();
    let mut letters = clause.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    let stop = if clause.is_empty() || clause.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    first.chain(letters).chain(stop.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::{alters_display, bounded, is_invisible, sentence, single_line_fault};
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
            assert!(alters_display(c) && is_invisible(c), "{c:?}");
        }
        for c in ['\u{200d}', '\u{ad}', '\u{feff}', '\u{e0041}'] {
            assert!(!alters_display(c) && is_invisible(c), "{c:?}");
        }
        assert!(" aä\u{645}語\u{1f600}".chars().all(|c| !alters_display(c) && !is_invisible(c)));
    }

    #[test]
    fn leaves_short_texts_alone() {
        assert_eq!(bounded("ok", 3), "ok");
        assert_eq!(bounded("okay then", 6), "oka…");
    }

    #[test]
    fn a_line_is_one_line_of_bounded_length_without_control_characters() {
        assert_eq!(single_line_fault("https://docs.example.com/ä", 512), None);
        for value in ["a\nb", "a\rb", "a\u{2028}b", "a\u{1b}[2J", "a\tb", "a\0"] {
            assert!(single_line_fault(value, 512).is_some(), "{value:?}");
        }
        assert_eq!(single_line_fault("abcd", 3).unwrap(), "has 4 bytes, and at most 3 are allowed");
    }

    #[test]
    fn a_clause_becomes_one_sentence() {
        for (clause, expected) in [
            ("it is so", "It is so."),
            (" it is so. ", "It is so."),
            ("It is cut…", "It is cut…"),
            ("élan", "Élan."),
            ("", ""),
        ] {
            assert_eq!(sentence(clause), expected);
        }
    }
}
