//! The room of texts in the system prompt. They cost tokens in every request, so they are limited.

/// A part of a Skill that the prompt does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Omission {
    /// The field.
    pub path: &'static str,
    /// What is not shown, as a clause.
    pub message: String,
}

/// Splits texts into those that fit into the prompt and the others, both in their order.
///
/// A text that is too long for the remaining room does not fit. A later, shorter text may still fit.
pub(super) fn split<'a>(
    texts: impl Iterator<Item = &'a str>,
    max_texts: usize,
    max_tokens: usize,
) -> (Vec<String>, Vec<String>) {
    let (mut in_prompt, mut without_room) = (Vec::new(), Vec::new());
    let mut room = max_tokens;
    for text in texts {
        match room.checked_sub(estimated_tokens(text)) {
            Some(rest) if in_prompt.len() < max_texts => {
                room = rest;
                in_prompt.push(text.to_owned());
            }
            _ => without_room.push(text.to_owned()),
        }
    }
    (in_prompt, without_room)
}

/// Estimates the tokens of a text: one for each four bytes, rounded up.
///
/// For English text, this is slightly more than the tokenizers of the large providers count. Characters of other scripts have
/// more bytes and more tokens.
fn estimated_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_other_scripts_is_counted_by_its_bytes() {
        assert_eq!(estimated_tokens("Never lie"), 3);
        assert_eq!(estimated_tokens("嘘をつかない"), 5);
    }
}
