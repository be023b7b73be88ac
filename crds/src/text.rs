//! Functions for texts from outside: they limit the length, and find characters that are dangerous to display.

/// Returns `text`, cut at a character boundary to at most `max` bytes. A cut text ends with an ellipsis, which is included in
/// `max`. If `max` is less than the 3 bytes of the ellipsis, a cut text is only the ellipsis.
pub fn bounded(text: &str, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| at + MARK.len() <= max).last().unwrap_or(0);
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

/// Checks that a value is a single line of at most `max` bytes without control characters. Returns the fault as the rest of a
/// sentence that begins with "it", or `None`. The fault does not contain the value, which may be a secret in the wrong field.
pub fn single_line_fault(value: &str, max: usize) -> Option<String> {
    if value.len() > max {
        return Some(format!("has {} bytes, and at most {max} are allowed", value.len()));
    }
    if value.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        return Some("is more than one line".to_owned());
    }
    value.contains(char::is_control).then(|| "contains a control character".to_owned())
}

/// Returns whether a character changes how a terminal shows the text around it: a control character, a character that
/// changes the direction of the text, or a line separator.
pub fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is invisible: it alters the display, or has no shape. Use this function only for texts that a person
/// decides about, because some scripts and emoji need characters without a shape.
pub fn is_invisible(c: char) -> bool {
    alters_display(c)
        || matches!(
            c,
            '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Converts a clause to a sentence: it begins with a capital letter and ends with a full stop.
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
        fn a_bounded_text_is_a_prefix_within_the_limit(text in ".*", max in 3_usize..64) {
            let cut = bounded(&text, max);
            prop_assert!(cut.len() <= max);
            prop_assert!(cut == text || text.starts_with(cut.trim_end_matches('…')));
        }
    }

    #[test]
    fn direction_marks_alter_the_display_and_joiners_are_only_invisible() {
        for c in ['\u{1b}', '\u{9b}', '\n', '\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}', '\u{61c}'] {
            assert!(alters_display(c) && is_invisible(c), "{c:?}");
        }
        for c in ['\u{200d}', '\u{ad}', '\u{feff}', '\u{e0041}'] {
            assert!(!alters_display(c) && is_invisible(c), "{c:?}");
        }
        assert!(" aä\u{645}語\u{1f600}".chars().all(|c| !alters_display(c) && !is_invisible(c)));
    }

    #[test]
    fn a_short_text_is_not_cut() {
        assert_eq!(bounded("ok", 3), "ok");
        assert_eq!(bounded("okay then", 6), "oka…");
    }

    #[test]
    fn a_single_line_is_short_and_has_no_control_characters() {
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
