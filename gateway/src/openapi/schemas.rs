//! The schemas of the types of requests and responses.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// The schemas of types. Those of responses have names; those of requests are written where they are used, because a type may be read and
/// written in different forms.
pub(super) struct Schemas {
    of_requests: SchemaGenerator,
    of_responses: SchemaGenerator,
}

impl Schemas {
    /// Creates generators without schemas.
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let inlined = settings().for_deserialize().with(|settings| settings.inline_subschemas = true);
        Self { of_requests: inlined.into_generator(), of_responses: settings().for_serialize().into_generator() }
    }

    /// Returns the schema of a request.
    pub(super) fn request<T: JsonSchema>(&mut self) -> Schema {
        self.of_requests.subschema_for::<T>()
    }

    /// Returns the reference to the schema of a response.
    pub(super) fn response<T: JsonSchema>(&mut self) -> Schema {
        self.of_responses.subschema_for::<T>()
    }

    /// Returns the schemas that have names.
    pub(super) fn named(mut self) -> Map<String, Value> {
        self.of_responses.take_definitions(true)
    }
}
