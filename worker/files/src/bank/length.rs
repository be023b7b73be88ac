//! The advised length of core notes.

use super::limits::{CORE_WORDS, DETAILS};
use super::name::Name;

/// Returns the request to shorten a core note that exceeds [`CORE_WORDS`].
pub(super) fn advice(name: &Name, text: &str) -> String {
    let words = words(text);
    if !name.is_core() || words <= CORE_WORDS {
        return String::new();
    }
    format!(
        "\n[{name} has {words} words. Every Job begins by reading it: keep it to about {CORE_WORDS}, move the rest to \
         notes in {DETAILS}/, and name them here.]"
    )
}

/// Returns the number of words in a text.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
