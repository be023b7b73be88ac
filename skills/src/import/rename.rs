//! Renames the fields of the dialect to those of the API. Most names only change from `snake_case` to `camelCase`.

use super::{guardrails, mcp_server};
use crate::finding::Finding;
use crate::naming::snake;
use crate::tree::{Entry, Node, Value};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use std::collections::HashMap;

/// Fields whose name in the API is not the camelCase form: the path in the dialect, and the name in the API.
const OTHER_NAMES: [(&str, &str); 1] = [("name", "displayName")];

/// Fields that a `Skill` cannot express: the path, the reason and the remedy.
const NOT_SUPPORTED: [(&str, &str, &str); 1] =
    [("id", "is the name of the object, not a field of its spec", "leave it at the top of the document")];

/// Renames the fields of a value. The places stay those of the document.
pub(super) fn rename_fields(
    node: &Node,
    schema: &JSONSchemaProps,
    namespace: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Node {
    Renamer { namespace, findings }.value(node, schema, "")
}

struct Renamer<'f> {
    /// The Skill's namespace, if it is known.
    namespace: Option<&'f str>,
    findings: &'f mut Vec<Finding>,
}

impl Renamer<'_> {
    /// Renames the fields of the value at a path. The path has the names of the API and no indices.
    fn value(&mut self, node: &Node, schema: &JSONSchemaProps, at: &str) -> Node {
        let value = match (&node.value, at) {
            (Value::List(rules), "policy.guardrails") => guardrails::to_map(node, rules, self.findings),
            (Value::Text { text, .. }, "mcpServer") => mcp_server::from_uri(node, text, self.namespace, self.findings),
            (Value::Map(entries), _) => match (&schema.properties, &schema.additional_properties) {
                (Some(_), _) => Value::Map(self.fields(entries, schema, at)),
                (None, Some(JSONSchemaPropsOrBool::Schema(values))) => Value::Map(
                    entries
                        .iter()
                        .map(|entry| Entry { node: self.value(&entry.node, values, at), ..entry.clone() })
                        .collect(),
                ),
                _ => node.value.clone(),
            },
            (Value::List(nodes), _) => match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(items)) => {
                    Value::List(nodes.iter().map(|node| self.value(node, items, at)).collect())
                }
                _ => node.value.clone(),
            },
            _ => node.value.clone(),
        };
        Node { place: node.place.clone(), value }
    }

    fn fields(&mut self, entries: &[Entry], schema: &JSONSchemaProps, at: &str) -> Vec<Entry> {
        let properties: Vec<&String> = schema.properties.iter().flatten().map(|(name, _)| name).collect();
        let mut lines: HashMap<&str, usize> = HashMap::new();
        let mut fields = Vec::new();
        for entry in entries {
            let path = join_path(at, &entry.name);
            if let Some((_, reason, remedy)) = NOT_SUPPORTED.iter().find(|(field, ..)| *field == path) {
                self.findings.push(Finding::warning(&entry.place, *reason).hint(*remedy));
                continue;
            }
            let other = OTHER_NAMES.iter().find(|(field, _)| *field == path).map(|(_, name)| *name);
            let named = |name: &&String| match other {
                Some(other) => *name == other,
                None => *name == &entry.name || snake(name) == entry.name,
            };
            let Some(name) = properties.iter().find(|name| named(name)) else {
                self.report_unknown(entry, &properties);
                continue;
            };
            if let Some(line) = lines.insert(name.as_str(), entry.place.line) {
                let message = format!("is the same field as on line {line}, in another spelling: keep one of them");
                self.findings.push(Finding::error(&entry.place, message));
                continue;
            }
            let Some(property) = schema.properties.as_ref().and_then(|properties| properties.get(*name)) else {
                continue;
            };
            let node = self.value(&entry.node, property, &join_path(at, name));
            fields.push(Entry { name: (*name).clone(), place: entry.place.clone(), node });
        }
        fields
    }

    fn report_unknown(&mut self, entry: &Entry, properties: &[&String]) {
        let known: Vec<String> = properties.iter().map(|name| snake(name)).collect();
        self.findings.push(Finding::unknown_field(entry, known.iter().map(String::as_str)));
    }
}

fn join_path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}
