//! The advised length of core notes.

use super::limits::{ADVISED_CORE_WORDS, DETAILS};
use super::name::Name;

/// Returns the advice to shorten a core note with more than [`ADVISED_CORE_WORDS`] words; empty for other notes.
pub(super) fn advice(name: &Name, text: &str) -> String {
    let words = count_words(text);
    if !name.is_core() || words <= ADVISED_CORE_WORDS {
        return String::new();
    }
    format!(
        "\n[{name} has {words} words. Every Job reads it at its start. Shorten it to about {ADVISED_CORE_WORDS} words, move the rest to \
         notes in {DETAILS}/, and name them here.]"
    )
}

/// Returns the number of words in a text.
pub(super) fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}
