//! Checks the keywords of a schema that bound the size and the content of a value.

use super::patterns;
use super::spec::Schema;
use crate::finding::{Finding, did_you_mean, quoted};
use crate::naming::Naming;
use crate::tree::Node;
use serde_json::Number;
use std::collections::HashMap;

/// Returns the faults of a text, each as the rest of a sentence that begins with its path.
pub(crate) fn text_faults(text: &str, schema: &Schema) -> Vec<String> {
    if let Some(values) = &schema.enum_ {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        if values.contains(&text) {
            return Vec::new();
        }
        let values = without_excluded(values, schema);
        let near = did_you_mean(text, values.iter().copied());
        return vec![format!("must be {}, and is {}{near}", join_alternatives(&values), quoted(text))];
    }
    let length = to_i64(text.chars().count());
    let mut faults = Vec::new();
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        faults.push(format!("has {length} characters, and at most {max} are allowed"));
    }
    if schema.min_length.is_some_and(|min| length < min) {
        faults.push(if length == 0 {
            "must not be empty".to_owned()
        } else {
            format!("is too short: {}", quoted(text))
        });
        return faults;
    }
    if let Some(pattern) = schema.pattern.as_deref()
        && patterns::matches(pattern, text) != Some(true)
    {
        faults.push(format!("must be {}, and is {}", patterns::description(pattern), quoted(text)));
    }
    faults
}

/// Returns the values of an enumeration without those that a CEL rule excludes, such as `!(self in ['array', 'object'])`.
fn without_excluded<'v>(values: Vec<&'v str>, schema: &Schema) -> Vec<&'v str> {
    let rules = || schema.validations.iter().map(|rule| rule.expression.as_str());
    let excluded: Vec<&str> = rules()
        .filter_map(|rule| rule.strip_prefix("!(self in [")?.strip_suffix("])"))
        .flat_map(|list| list.split(','))
        .map(|value| value.trim().trim_matches('\''))
        .collect();
    values.into_iter().filter(|value| !excluded.contains(value)).collect()
}

/// Returns the faults of a number.
pub(crate) fn number_faults(number: &Number, schema: &Schema) -> Vec<String> {
    let value = number.as_f64().unwrap_or(f64::INFINITY);
    let too_small = schema.minimum.is_some_and(|min| value < min);
    let too_large = schema.maximum.is_some_and(|max| value > max);
    if !too_small && !too_large {
        return Vec::new();
    }
    let range = match (schema.minimum, schema.maximum) {
        (Some(min), Some(max)) => format!("between {min} and {max}"),
        (Some(min), None) => format!("at least {min}"),
        (_, max) => format!("at most {}", max.unwrap_or_default()),
    };
    vec![format!("must be {range}, and is {number}")]
}

/// Returns the faults of a list's length.
pub(crate) fn list_faults(length: usize, schema: &Schema) -> Vec<String> {
    size_faults(to_i64(length), schema.min_items, schema.max_items, "items")
}

/// Returns the faults of an object's size.
pub(crate) fn object_faults(length: usize, schema: &Schema) -> Vec<String> {
    size_faults(to_i64(length), schema.min_properties, schema.max_properties, "fields")
}

fn size_faults(length: i64, min: Option<i64>, max: Option<i64>, unit: &str) -> Vec<String> {
    if let Some(max) = max.filter(|max| length > *max) {
        return vec![format!("has {length} {unit}, and at most {max} are allowed")];
    }
    match min.filter(|min| length < *min) {
        Some(1) => vec!["must not be empty".to_owned()],
        Some(min) => vec![format!("has {length} {unit}, and needs at least {min}")],
        None => Vec::new(),
    }
}

/// Returns a finding for each item that occurs twice, if the schema of the list does not allow that.
pub(crate) fn duplicates(nodes: &[Node], schema: &Schema, naming: Naming) -> Vec<Finding> {
    let keys = schema.list_map_keys.as_slice();
    let is_set = schema.list_type.as_deref() == Some("set");
    if keys.is_empty() && !is_set {
        return Vec::new();
    }
    let mut first_lines: HashMap<String, usize> = HashMap::new();
    let mut findings = Vec::new();
    for node in nodes {
        let identity = match keys {
            [] => Some(node.json().to_string()),
            // An item without its key has another finding.
            keys => keys.iter().map(|key| node.get(key).map(|value| value.json().to_string())).collect(),
        };
        let Some(identity) = identity else { continue };
        let place = keys.first().and_then(|key| node.get(key)).map_or(&node.place, |value| &value.place);
        if let Some(line) = first_lines.get(&identity) {
            let message = match keys.first() {
                None => format!("is in the list twice, first on line {line}"),
                Some(key) => format!("the {} is in the list twice, first on line {line}", naming.spell(key)),
            };
            findings.push(Finding::error(place, message));
        } else {
            first_lines.insert(identity, place.line);
        }
    }
    findings
}

fn join_alternatives(values: &[&str]) -> String {
    match values {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn to_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
