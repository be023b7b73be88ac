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

#[cfg(test)]
mod tests {
    use super::bounded;
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
    fn leaves_short_texts_alone() {
        assert_eq!(bounded("ok", 3), "ok");
        assert_eq!(bounded("okay then", 6), "oka…");
    }
}
