//! Compares how often the values of an answer's fields occur in two texts.

use super::difference::{Difference, IsChange};
use super::error::Error;
use bloomery_crds::text::bounded;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The most values that are compared. Each one is searched in both texts.
const MAX_VALUES: usize = 128;

/// Returns the first text of a field whose counts in the two texts are a change of the content. Other values are not searched: [`Items`]
/// compares the numbers of both texts, and `true`, `false` and null may be written in other words.
///
/// [`Items`]: super::items::Items
///
/// # Errors
/// If there are too many values to compare.
pub(super) fn difference(
    before: &str,
    after: &str,
    fields: &Map<String, Value>,
    is_change: IsChange,
) -> Result<Option<Difference>, Error> {
    let values = text_values(fields);
    if values.len() > MAX_VALUES {
        return Err(Error(format!(
            "the answer has {} values in its fields, but at most {MAX_VALUES} are compared",
            values.len()
        )));
    }
    let (before, after) = (one_line(before), one_line(after));
    Ok(values.iter().find_map(|value| {
        let (count_before, count_after) = (count(&before, value), count(&after, value));
        is_change(count_before, count_after).then(|| Difference {
            item: format!("value {:?}", bounded(value, 120)),
            before: count_before,
            after: count_after,
        })
    }))
}

fn text_values(fields: &Map<String, Value>) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    let mut unvisited: Vec<&Value> = fields.values().collect();
    while let Some(value) = unvisited.pop() {
        match value {
            Value::String(text) => {
                let text = one_line(text);
                if !text.is_empty() {
                    values.insert(text);
                }
            }
            Value::Array(items) => unvisited.extend(items),
            Value::Object(map) => unvisited.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    values
}

/// Returns a text with its white space collapsed: the polisher may wrap lines differently.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns how often a value occurs in a text as whole words.
fn count(text: &str, value: &str) -> usize {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (begins_with_word, ends_with_word) = (is_word(value.chars().next()), is_word(value.chars().next_back()));
    let is_whole = |at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + value.len()..).and_then(|text| text.chars().next());
        !(begins_with_word && is_word(before) || ends_with_word && is_word(after))
    };
    text.match_indices(value).filter(|(at, _)| is_whole(*at)).count()
}
