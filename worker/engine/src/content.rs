//! Checks that a rewritten text keeps the content of the original.
//!
//! The check compares texts. It cannot find every change of meaning, such as a lost "not" (`docs/explanation/engine.md`).

mod difference;
mod error;
mod items;
mod values;

pub use error::Error;

use bloomery_crds::text::bounded;
use difference::{Difference, IsChange};
use items::Items;
use serde_json::{Map, Value};

/// The longest text that is compared, in bytes. A longer answer stays unpolished.
const MAX_TEXT_BYTES: usize = 128 * 1024;

/// The longest sentence about a change, in bytes.
const MAX_ERROR_BYTES: usize = 256;

/// Checks that a rewritten text has the content of the original, and no other. Numbers, URLs, e-mail addresses, code spans and the
/// values of the answer's fields must occur equally often in both texts. Numbers are compared by their value (`1,000` is `1000`,
/// `2.50` is `2.5`); the ordinals of list items are ignored.
///
/// # Errors
/// If the texts differ, or a text is empty or too long to be compared.
pub fn check_content(before: &str, after: &str, fields: &Map<String, Value>) -> Result<(), Error> {
    check(before, after, fields, |before, after| before != after)
}

/// Checks like [`check_content`] that a rewritten text has the content of the original. It may have more.
///
/// # Errors
/// If the text has lost content, or a text is empty or too long to be compared.
pub fn check_nothing_lost(before: &str, after: &str, fields: &Map<String, Value>) -> Result<(), Error> {
    check(before, after, fields, |before, after| before > after)
}

fn check(before: &str, after: &str, fields: &Map<String, Value>, is_change: IsChange) -> Result<(), Error> {
    if after.trim().is_empty() {
        return Err(Error("the rewritten answer is empty".to_owned()));
    }
    for (text, name) in [(before, "the answer"), (after, "the rewritten answer")] {
        if text.len() > MAX_TEXT_BYTES {
            return Err(Error(format!("{name} has {} bytes, but at most {MAX_TEXT_BYTES} are compared", text.len())));
        }
    }
    let difference = match Items::count_in(before).difference(&Items::count_in(after), is_change) {
        Some(difference) => Some(difference),
        None => values::difference(before, after, fields, is_change)?,
    };
    match difference {
        Some(Difference { item, before, after }) => Err(Error(bounded(
            &format!("the {item} occurs {} in the answer and {} in the rewritten answer", times(before), times(after)),
            MAX_ERROR_BYTES,
        ))),
        None => Ok(()),
    }
}

fn times(n: usize) -> String {
    match n {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests;
