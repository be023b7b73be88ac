//! The values of an answer's fields, and how often they stand in a text.

use super::difference::Difference;
use bloomery_crds::text::bounded;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// How many values are compared: each is one walk through both texts.
const MAX_VALUES: usize = 128;

/// The first value of a field that does not stand as often in both texts. Numbers are compared as numbers of the
/// text; `true`, `false` and null are words like others.
///
/// # Errors
/// A sentence where there are too many values to be compared.
pub(super) fn difference(before: &str, after: &str, fields: &Map<String, Value>) -> Result<Option<Difference>, String> {
    let values = values(fields);
    if values.len() > MAX_VALUES {
        return Err(format!(
            "the answer has {} values in its fields, and at most {MAX_VALUES} are compared",
            values.len()
        ));
    }
    let (before, after) = (one_line(before), one_line(after));
    Ok(values.iter().find_map(|value| {
        let (was, is) = (count(&before, value), count(&after, value));
        (was != is).then(|| Difference { what: format!("value {:?}", bounded(value, 120)), before: was, after: is })
    }))
}

fn values(fields: &Map<String, Value>) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    let mut open: Vec<&Value> = fields.values().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let text = one_line(text);
                if !text.is_empty() {
                    values.insert(text);
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    values
}

/// A line that was wrapped elsewhere is the same line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How often a value stands in a text as words of its own.
fn count(text: &str, value: &str) -> usize {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (first, last) = (is_word(value.chars().next()), is_word(value.chars().next_back()));
    let stands_alone = |at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + value.len()..).and_then(|text| text.chars().next());
        !(first && is_word(before) || last && is_word(after))
    };
    text.match_indices(value).filter(|(at, _)| stands_alone(*at)).count()
}
