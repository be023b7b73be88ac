//! Renames the fields of the dialect to those of the API. Most names only change from `snake_case` to `camelCase`.

use super::{guardrails, mcp_server};
use crate::finding::Finding;
use crate::naming::to_snake_case;
use crate::schema::spec::Schema;
use crate::tree::{Entry, Node, Value};
use std::collections::HashMap;

/// Top-level fields whose name in the API is not the camelCase form: the name in the dialect, and the name in the API.
const OTHER_NAMES: [(&str, &str); 1] = [("name", "displayName")];

/// Renames the fields of a value. The places stay those of the document.
pub(crate) fn rename_fields(
    node: &Node,
    schema: &Schema,
    namespace: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Node {
    Renamer { namespace, findings }.rename_value(node, schema, "")
}

struct Renamer<'f> {
    /// The Skill's namespace, if it is known.
    namespace: Option<&'f str>,
    findings: &'f mut Vec<Finding>,
}

impl Renamer<'_> {
    /// Renames the fields of a value. `at` is its API path below `spec`, without indices.
    fn rename_value(&mut self, node: &Node, schema: &Schema, at: &str) -> Node {
        let value = match (&node.value, at) {
            (Value::List(rules), "policy.guardrails") => guardrails::to_map(node, rules, self.findings),
            (Value::Text { text, .. }, "mcpServer") => mcp_server::from_uri(node, text, self.namespace, self.findings),
            (Value::Map(entries), _) => match (&schema.properties, &schema.additional_properties) {
                (Some(_), _) => Value::Map(self.rename_entries(entries, schema, at)),
                (None, Some(values)) => Value::Map(
                    entries
                        .iter()
                        .map(|entry| Entry { node: self.rename_value(&entry.node, values, at), ..entry.clone() })
                        .collect(),
                ),
                (None, None) => node.value.clone(),
            },
            (Value::List(nodes), _) => match &schema.items {
                Some(items) => Value::List(nodes.iter().map(|node| self.rename_value(node, items, at)).collect()),
                None => node.value.clone(),
            },
            _ => node.value.clone(),
        };
        Node { place: node.place.clone(), value }
    }

    fn rename_entries(&mut self, entries: &[Entry], schema: &Schema, at: &str) -> Vec<Entry> {
        let properties: Vec<(&String, &Schema)> = schema.properties.iter().flatten().collect();
        let mut first_lines: HashMap<&str, usize> = HashMap::new();
        let mut fields = Vec::new();
        for entry in entries {
            let mut other_names = OTHER_NAMES.iter().filter(|_| at.is_empty());
            let other_name = other_names.find(|(dialect, _)| *dialect == entry.name).map(|(_, api)| *api);
            let is_name_of_entry = |name: &str| match other_name {
                Some(other_name) => name == other_name,
                None => name == entry.name || to_snake_case(name) == entry.name,
            };
            let Some((name, property)) = properties.iter().find(|(name, _)| is_name_of_entry(name)) else {
                self.report_unknown(entry, &properties);
                continue;
            };
            if let Some(line) = first_lines.insert(name.as_str(), entry.place.line) {
                let message = format!("is the same field as on line {line}, in another spelling: keep one of them");
                self.findings.push(Finding::error(&entry.place, message));
                continue;
            }
            let node = self.rename_value(&entry.node, property, &join_path(at, name));
            fields.push(Entry { name: (*name).clone(), place: entry.place.clone(), node });
        }
        fields
    }

    fn report_unknown(&mut self, entry: &Entry, properties: &[(&String, &Schema)]) {
        let known: Vec<String> = properties.iter().map(|(name, _)| to_snake_case(name)).collect();
        self.findings.push(Finding::unknown_field(entry, known.iter().map(String::as_str)));
    }
}

fn join_path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}
