//! The schemas of the CRDs, with the keywords that they use. They take a third of the memory of `JSONSchemaProps`, which has all keywords
//! of Kubernetes.

use bloomery_crds::v1alpha1::schema_text_of;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The schema of a value.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    pub(crate) type_: Option<String>,
    pub(crate) properties: Option<BTreeMap<String, Schema>>,
    pub(crate) additional_properties: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Option<Vec<String>>,
    #[serde(rename = "enum")]
    pub(crate) enum_: Option<Vec<String>>,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(crate) int_or_string: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) preserve_unknown_fields: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(crate) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(crate) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(crate) validations: Vec<Rule>,
}

/// A rule in CEL.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    #[serde(rename = "rule")]
    pub(crate) expression: String,
    pub(crate) message: Option<String>,
    pub(crate) field_path: Option<String>,
}

/// The schema of each kind. Each one is read once, when it is needed.
static SCHEMAS: [(&str, LazyLock<Option<Schema>>); 4] = [
    ("Skill", LazyLock::new(|| read("Skill"))),
    ("Job", LazyLock::new(|| read("Job"))),
    ("Model", LazyLock::new(|| read("Model"))),
    ("Approval", LazyLock::new(|| read("Approval"))),
];

fn read(kind: &str) -> Option<Schema> {
    serde_json::from_str(schema_text_of(kind)?).ok()
}

/// Returns the schema of a kind.
pub(crate) fn schema_of(kind: &str) -> Option<&'static Schema> {
    let (_, schema) = SCHEMAS.iter().find(|(name, _)| *name == kind)?;
    schema.as_ref()
}

/// Returns the schema of a kind's `spec`.
pub(crate) fn spec_schema_of(kind: &str) -> Option<&'static Schema> {
    schema_of(kind)?.properties.as_ref()?.get("spec")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::v1alpha1::kinds;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// The keywords of a schema that the checks do not need: they describe a value, and refuse none.
    const IGNORED: [&str; 3] = ["default", "format", "title"];

    /// Adds the keywords of a schema, and of all schemas in it.
    fn collect<'a>(schema: &'a Value, keywords: &mut BTreeSet<&'a str>) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            keywords.insert(keyword);
            match keyword.as_str() {
                "properties" => value.as_object().unwrap().values().for_each(|schema| collect(schema, keywords)),
                "items" | "additionalProperties" => collect(value, keywords),
                _ => {}
            }
        }
    }

    #[test]
    fn every_keyword_of_the_crds_is_read() {
        let known = [
            "additionalProperties",
            "enum",
            "items",
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minItems",
            "minLength",
            "minProperties",
            "minimum",
            "pattern",
            "properties",
            "required",
            "type",
            "x-kubernetes-int-or-string",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-list-type",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-validations",
        ];
        let texts: Vec<Value> =
            kinds().map(|kind| serde_json::from_str(schema_text_of(kind).unwrap()).unwrap()).collect();
        let mut keywords = BTreeSet::new();
        for schema in &texts {
            collect(schema, &mut keywords);
        }
        let unknown: Vec<_> =
            keywords.iter().filter(|keyword| !known.contains(keyword) && !IGNORED.contains(keyword)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(kinds().all(|kind| spec_schema_of(kind).is_some()));
    }
}
