//! Checks a document against the structural schema of its CRD. All faults are reported at once, each with its place.
//!
//! Only the keywords that the CRDs of Bloomery use are supported. The CEL rules are evaluated by `rules`.
//!
//! The crate `jsonschema` is not used, because it would replace only the comparisons in `bounds`, which are a few lines each.
//! Its errors would have to be converted to places of the document and to these messages. The checker would still have to
//! walk through the document, because it also
//!
//! - removes unknown and empty fields, as the API server does;
//! - reports unknown fields with the most similar known field, although the CRDs do not set `additionalProperties: false`;
//! - checks the Kubernetes extensions, such as the keys of lists;
//! - finds words that kubectl reads as another type.

pub(crate) mod bounds;
pub(crate) mod patterns;
pub(crate) mod spec;

use crate::finding::{Finding, quoted};
use crate::naming::Naming;
use crate::tree::{Entry, Node, Place, Value};
use crate::yaml::ambiguous::kubectl_reading;
use patterns::{DURATION, description};
use serde_json::Map;
use spec::Schema;

/// Checks a value against a schema. Returns the value as JSON, without unknown and empty fields. A value of a wrong type may become
/// null.
pub(crate) fn check(node: &Node, schema: &Schema, naming: Naming, findings: &mut Vec<Finding>) -> serde_json::Value {
    Checker { naming, findings }.check_value(node, schema)
}

/// Returns the schema of a field.
pub(crate) fn property<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    let named = schema.properties.as_ref().and_then(|properties| properties.get(name));
    named.or(schema.additional_properties.as_deref())
}

struct Checker<'f> {
    naming: Naming,
    findings: &'f mut Vec<Finding>,
}

impl Checker<'_> {
    fn check_value(&mut self, node: &Node, schema: &Schema) -> serde_json::Value {
        if schema.preserve_unknown_fields && schema.properties.is_none() {
            if schema.type_.as_deref() == Some("object") && !matches!(node.value, Value::Map(_)) {
                self.report_wrong_type(node, "object");
            }
            return node.json();
        }
        if schema.int_or_string {
            return self.check_int_or_string(node, schema);
        }
        let expected = schema.type_.as_deref().unwrap_or_default();
        match (&node.value, expected) {
            (Value::Map(entries), "object") => self.check_object(&node.place, entries, schema),
            (Value::List(nodes), "array") => self.check_list(node, nodes, schema),
            (Value::Text { text, plain }, "string") => {
                if *plain {
                    self.report_ambiguous_word(node, text);
                }
                self.report(&node.place, bounds::text_faults(text, schema));
                node.json()
            }
            (Value::Number(number), "integer") if number.is_i64() || number.is_u64() => {
                self.report(&node.place, bounds::number_faults(number, schema));
                node.json()
            }
            (Value::Number(number), "number") => {
                self.report(&node.place, bounds::number_faults(number, schema));
                node.json()
            }
            (Value::Bool(_), "boolean") => node.json(),
            _ => {
                match &node.value {
                    Value::Number(number) if schema.pattern.as_deref() == Some(DURATION) => {
                        let message = format!("must be {}, and is the number {number}", description(DURATION));
                        let finding = Finding::error(&node.place, message);
                        self.findings.push(finding.hint(format!("write {number}s if seconds are meant")));
                    }
                    _ => self.report_wrong_type(node, expected),
                }
                serde_json::Value::Null
            }
        }
    }

    fn check_int_or_string(&mut self, node: &Node, schema: &Schema) -> serde_json::Value {
        match &node.value {
            Value::Number(number) if number.is_i64() => {}
            Value::Text { text, .. } => self.report(&node.place, bounds::text_faults(text, schema)),
            _ => self.report_wrong_type(node, "string"),
        }
        node.json()
    }

    fn check_object(&mut self, place: &Place, entries: &[Entry], schema: &Schema) -> serde_json::Value {
        let mut object = Map::new();
        for entry in entries {
            match property(schema, &entry.name) {
                // The API server treats an empty field as absent.
                Some(_) if entry.node.value == Value::Null => {}
                Some(property) => {
                    object.insert(entry.name.clone(), self.check_value(&entry.node, property));
                }
                None => self.report_unknown(entry, schema),
            }
        }
        for required in schema.required.iter().flatten().filter(|required| !object.contains_key(*required)) {
            self.report_missing(place, entries, required);
        }
        self.report(place, bounds::object_faults(object.len(), schema));
        object.into()
    }

    fn report_unknown(&mut self, entry: &Entry, schema: &Schema) {
        let known = schema.properties.iter().flatten().map(|(name, _)| name.as_str());
        self.findings.push(Finding::unknown_field(entry, known));
    }

    fn report_missing(&mut self, place: &Place, entries: &[Entry], required: &str) {
        let finding = match entries.iter().find(|entry| entry.name == required) {
            Some(empty) => Finding::empty_field(&empty.place),
            None => Finding::missing_field(&place.of_field(&self.naming.spell(required))),
        };
        self.findings.push(finding);
    }

    fn check_list(&mut self, node: &Node, nodes: &[Node], schema: &Schema) -> serde_json::Value {
        self.report(&node.place, bounds::list_faults(nodes.len(), schema));
        let duplicates = bounds::duplicates(nodes, schema, self.naming);
        self.findings.extend(duplicates);
        match &schema.items {
            Some(items) => nodes.iter().map(|node| self.check_value(node, items)).collect(),
            None => node.json(),
        }
    }

    fn report_wrong_type(&mut self, node: &Node, expected: &str) {
        let expected_text = match expected {
            "string" => "text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            _ => "an object",
        };
        let actual = match &node.value {
            Value::Text { text, .. } => format!("the text {}", quoted(text)),
            Value::Number(number) => format!("the number {number}"),
            Value::Bool(value) => value.to_string(),
            _ => node.kind().to_owned(),
        };
        let mut finding = Finding::error(&node.place, format!("must be {expected_text}, and is {actual}"));
        match (&node.value, expected) {
            (Value::Number(_) | Value::Bool(_), "string") => finding = finding.hint("put it in quotes"),
            (Value::Text { plain: true, text }, "boolean") if kubectl_reading(text).is_some() => {
                finding = finding.hint("write true or false");
            }
            (Value::Text { plain: false, text }, "integer" | "number") if text.parse::<f64>().is_ok() => {
                finding = finding.hint("leave the quotes out");
            }
            (Value::Text { .. }, "array") => finding = finding.hint("begin each item with '- ', or write [a, b]"),
            _ => {}
        }
        self.findings.push(finding);
    }

    /// Reports a word that kubectl does not read as text. In the dialect it is harmless, since `import` writes it in quotes.
    fn report_ambiguous_word(&mut self, node: &Node, text: &str) {
        if let (Naming::Api, Some(reading)) = (self.naming, kubectl_reading(text)) {
            let message = format!("must be text, and kubectl reads the word {} as {reading}", quoted(text));
            self.findings.push(Finding::error(&node.place, message).hint("put it in quotes"));
        }
    }

    fn report(&mut self, place: &Place, faults: Vec<String>) {
        self.findings.extend(faults.into_iter().map(|fault| Finding::error(place, fault)));
    }
}
