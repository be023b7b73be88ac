//! The custom resource definitions that the chart installs.

use super::{Approval, Job, Model, Skill};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::core::CustomResourceExt;
use std::sync::LazyLock;

/// The annotation of a CRD with the version of its content, which is [`CRD_VERSION`]. The chart never replaces a CRD by an older one.
pub const CRD_VERSION_ANNOTATION: &str = "bloomery.dev/crd-version";

/// The version of the CRDs' content. The first change of a CRD after a release raises it.
pub const CRD_VERSION: u32 = 7;

/// The definition of each kind, in the order in which the chart installs them. Each one is computed once, when it is needed.
static DEFINITIONS: [(&str, LazyLock<CustomResourceDefinition>); 4] = [
    ("Skill", LazyLock::new(|| tidied(Skill::crd()))),
    ("Job", LazyLock::new(|| tidied(Job::crd()))),
    ("Model", LazyLock::new(|| tidied(Model::crd()))),
    ("Approval", LazyLock::new(|| tidied(Approval::crd()))),
];

/// Returns all custom resource definitions, in the order in which the chart installs them.
pub fn definitions() -> impl Iterator<Item = &'static CustomResourceDefinition> {
    DEFINITIONS.iter().map(|(_, definition)| &**definition)
}

/// Returns the names of all kinds.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.iter().map(|(kind, _)| *kind)
}

/// The schema of each kind without descriptions, as `make crds` has generated it from its definition. `bloomery run` needs the one of a
/// Skill at its start, and to compute the definition would take half of its CPU time until the first request.
static SCHEMAS: [(&str, &str); 4] = [
    ("Skill", include_str!("../../schemas/skills.json")),
    ("Job", include_str!("../../schemas/skilljobs.json")),
    ("Model", include_str!("../../schemas/models.json")),
    ("Approval", include_str!("../../schemas/approvals.json")),
];

/// Returns the schema of a kind as JSON, without descriptions.
pub fn schema_text_of(kind: &str) -> Option<&'static str> {
    SCHEMAS.iter().find(|(name, _)| *name == kind).map(|(_, text)| *text)
}

/// Returns the schema of a kind, without descriptions.
pub fn schema_of(kind: &str) -> Option<JSONSchemaProps> {
    serde_json::from_str(schema_text_of(kind)?).ok()
}

/// Returns the schema of a definition without its descriptions, for [`schema_of`].
pub fn schema_without_descriptions(definition: &CustomResourceDefinition) -> Option<JSONSchemaProps> {
    let mut schema = definition.spec.versions.first()?.schema.as_ref()?.open_api_v3_schema.clone()?;
    each_schema(&mut schema, &|schema| schema.description = None);
    Some(schema)
}

/// Returns the schema of a kind's `spec`.
pub fn spec_schema_of(kind: &str) -> Option<JSONSchemaProps> {
    schema_of(kind)?.properties?.remove("spec")
}

/// Adds the version to a definition, applies [`tidy`] to all its schemas, and gives the status its default.
fn tidied(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    definition.metadata.annotations = Some([(CRD_VERSION_ANNOTATION.to_owned(), CRD_VERSION.to_string())].into());
    for version in &mut definition.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|validation| validation.open_api_v3_schema.as_mut()) {
            each_schema(schema, &tidy);
            let status = schema.properties.as_mut().and_then(|properties| properties.get_mut("status"));
            if let Some(status) = status {
                status.default = Some(JSON(serde_json::json!({ "observedGeneration": NEVER_OBSERVED })));
            }
        }
    }
    definition
}

/// The `observedGeneration` of an object that the operator has not seen yet. No spec has this generation.
///
/// Without it, kstatus and `helm --wait` treat a new object as ready. A create removes the status, so the default is on the status
/// itself, where the API server adds it to each object that it returns.
const NEVER_OBSERVED: i64 = -1;

/// The pattern of quantities that the API server accepts. The generated schema has no pattern, so an invalid quantity would be found
/// only when the operator creates a pod with it.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The maximum size of the value of an environment variable, in characters. Kubernetes has no maximum, but an object that the API
/// server cannot store must be refused before it is applied.
const MAX_ENV_VALUE_LENGTH: i64 = 4096;

/// Adapts a generated schema to the API server: removes `nullable`, adds the pattern of quantities and the maximum of environment
/// variables, and replaces unknown formats.
fn tidy(schema: &mut JSONSchemaProps) {
    // With `nullable`, an explicit null counts as a present field in rules. Without it, the API server removes the field.
    schema.nullable = None;
    let is_quantity = schema.description.as_deref().is_some_and(|text| text.starts_with("Quantity is a fixed-point"));
    if schema.x_kubernetes_int_or_string == Some(true) && is_quantity {
        schema.pattern = Some(QUANTITY.to_owned());
    }
    if schema.description.as_deref().is_some_and(|text| text.starts_with("Variable references $(VAR_NAME)")) {
        schema.max_length = Some(MAX_ENV_VALUE_LENGTH);
    }
    // The API server warns about unknown formats at every apply.
    if let Some(format) = schema.format.as_deref() {
        schema.format = match format {
            "uint16" => Some("int32".to_owned()),
            "uint32" | "uint64" | "uint" => Some("int64".to_owned()),
            _ => Some(format.to_owned()),
        };
    }
}

/// Changes a schema and all schemas in it.
fn each_schema(schema: &mut JSONSchemaProps, change: &impl Fn(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        each_schema(property, change);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = schema.items.as_mut() {
        each_schema(items, change);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        each_schema(values, change);
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFINITIONS, definitions, schema_of, schema_without_descriptions};
    use kube::core::ResourceExt;

    #[test]
    fn the_value_of_an_environment_variable_is_bounded() {
        let skill = serde_json::to_value(super::spec_schema_of("Skill").unwrap()).unwrap();
        let env = &skill["properties"]["mcpServer"]["properties"]["container"]["properties"]["env"];
        assert_eq!(env["items"]["properties"]["value"]["maxLength"], 4096);
    }

    #[test]
    fn the_committed_files_match_the_types() {
        for (kind, definition) in &DEFINITIONS {
            assert_eq!(definition.spec.names.kind, *kind);
            let path = format!("{}/yaml/{}.yaml", env!("CARGO_MANIFEST_DIR"), definition.spec.names.plural);
            let committed: serde_json::Value = serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let generated = serde_json::to_value(&**definition).unwrap();
            assert_eq!(committed, generated, "{}: run `make crds`", definition.name_any());
            let schema = schema_without_descriptions(definition);
            assert!(schema.is_some() && schema_of(kind) == schema, "{kind}: run `make crds`");
        }
    }

    #[test]
    fn quantities_have_a_pattern() {
        let skill = serde_json::to_value(definitions().next()).unwrap();
        let schema = &skill["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let container =
            &schema["properties"]["spec"]["properties"]["mcpServer"]["properties"]["container"]["properties"];
        for map in ["limits", "requests"] {
            assert!(container["resources"]["properties"][map]["additionalProperties"]["pattern"].is_string(), "{map}");
        }
    }

    #[test]
    fn every_field_is_documented() {
        fn undocumented(path: &str, schema: &serde_json::Value, fields: &mut Vec<String>) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                // The types of `resources` and `env` are those of pods. Kubernetes has no description for two of their fields.
                if property["description"].is_null() && !path.contains("resources") && !path.contains("env") {
                    fields.push(path.clone());
                }
                undocumented(&path, property, fields);
                undocumented(&path, &property["items"], fields);
            }
        }
        for definition in definitions() {
            let schema = serde_json::to_value(&definition.spec.versions[0].schema).unwrap();
            let mut fields = Vec::new();
            undocumented("", &schema["openAPIV3Schema"], &mut fields);
            assert_eq!(fields, Vec::<String>::new(), "{}", definition.name_any());
        }
    }
}
