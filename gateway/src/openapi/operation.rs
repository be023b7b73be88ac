//! An operation of the API.

use super::schemas::Schemas;
use crate::openai::error::ErrorBody;
use crate::problem::Problem;
use schemars::Schema;
use serde_json::{Map, Value, json};

/// The statuses of errors that all operations have: an invalid request, no access, no right, no such namespace or object, another method, too
/// many requests, a failure, and a runtime that cannot answer now.
const COMMON_ERRORS: [u16; 8] = [400, 401, 403, 404, 405, 429, 500, 503];

/// The statuses of errors in a body: its time, its size, its media type, and its fields.
const BODY_ERRORS: [u16; 4] = [408, 413, 415, 422];

/// The path of the document, which needs no identity.
pub(super) const DOCUMENT_PATH: &str = "/openapi.json";

/// The operation of a route and a method.
pub(super) struct Operation {
    /// The path of the route.
    pub(super) path: &'static str,
    /// The method, in lower case.
    pub(super) method: &'static str,
    /// A phrase for people.
    pub(super) summary: &'static str,
    /// Headers. The parameters in the path follow from the path.
    pub(super) headers: Vec<Value>,
    /// The schema of the body, if there is one.
    pub(super) body: Option<Schema>,
    /// The successful responses.
    pub(super) responses: Vec<(u16, Value)>,
    /// The statuses of errors, besides those of all operations.
    pub(super) errors: &'static [u16],
}

impl Operation {
    /// Returns whether a path belongs to the OpenAI front, whose errors have another form.
    fn is_of_front(&self) -> bool {
        self.path.starts_with("/v1/")
    }

    /// Returns the operation as an object of the document.
    pub(super) fn describe(&self, schemas: &mut Schemas) -> Value {
        let mut described = Map::new();
        let words = self.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let id: Vec<&str> = std::iter::once(self.method).chain(words).collect();
        described.insert("operationId".to_owned(), id.join("_").into());
        described.insert("summary".to_owned(), self.summary.into());
        if self.path == DOCUMENT_PATH {
            described.insert("security".to_owned(), json!([]));
        }
        let parameters: Vec<Value> = path_parameters(self.path).chain(self.headers.iter().cloned()).collect();
        if !parameters.is_empty() {
            described.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(schema) = &self.body {
            let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
            described.insert("requestBody".to_owned(), body);
        }
        let successes = self.responses.iter().map(|(status, response)| (status.to_string(), response.clone()));
        let mut responses: Map<String, Value> = successes.collect();
        let error = self.error(schemas);
        let of_body: &[u16] = if self.body.is_some() { &BODY_ERRORS } else { &[] };
        for status in COMMON_ERRORS.iter().chain(of_body).chain(self.errors) {
            responses.insert(status.to_string(), with_headers(*status, error.clone()));
        }
        described.insert("responses".to_owned(), responses.into());
        described.into()
    }

    /// Returns the response with an error.
    fn error(&self, schemas: &mut Schemas) -> Value {
        let (media_type, schema) = if self.is_of_front() {
            ("application/json", schemas.response::<ErrorBody>())
        } else {
            ("application/problem+json", schemas.response::<Problem>())
        };
        json!({"description": "The error", "content": {media_type: {"schema": schema}}})
    }
}

/// Adds the headers of a status to its response.
fn with_headers(status: u16, mut response: Value) -> Value {
    let (name, schema) = match status {
        401 => ("WWW-Authenticate", json!({"type": "string"})),
        405 => ("Allow", json!({"type": "string"})),
        429 => ("Retry-After", json!({"type": "integer", "minimum": 1})),
        _ => return response,
    };
    if let Some(response) = response.as_object_mut() {
        response.insert("headers".to_owned(), json!({name: {"required": true, "schema": schema}}));
    }
    response
}

/// Returns the parameters in a path.
fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let schema = match name {
            "job" => json!({"type": "string", "pattern": "^[-a-z0-9]{1,63}$"}),
            "call" => json!({"type": "string", "pattern": "^[0-9]{1,20}-[0-9]{1,20}$"}),
            "skill" => json!({"type": "string", "maxLength": 50, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}),
            "key" => json!({"type": "string", "enum": ["status", "timeline", "context", "workflows", "requests"]}),
            _ => json!({"type": "string"}),
        };
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    })
}
