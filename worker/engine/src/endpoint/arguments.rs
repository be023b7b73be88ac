//! The arguments of a call to an endpoint.

use super::address::{Path, escape_query};
use super::error::Error;
use bloomery_crds::v1alpha1::{CALL_HEADERS, Method};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest value of a header, in bytes.
const MAX_HEADER_BYTES: usize = 1024;

const CONTENT_TYPE: &str = "content-type";

/// The arguments of a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CallArguments {
    pub(super) resource: Option<String>,
    path: Option<String>,
    method: Option<Method>,
    #[serde(default)]
    query: Map<String, Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "read_present")]
    json: Option<Value>,
    body: Option<String>,
}

/// Reads a present value as `Some`: `null` is a valid body.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

type Headers = Vec<(String, String)>;

impl CallArguments {
    pub(super) fn read(arguments: &Value) -> Result<Self, Error> {
        Self::deserialize(arguments).map_err(|error| format!("the arguments are invalid: {error}").into())
    }

    /// Returns the path, which is empty if the call has none. A path has one valid spelling: conditions of the Skill compare the
    /// argument, and a call with another spelling could evade them.
    pub(super) fn path(&self) -> Result<Path, Error> {
        let Some(text) = &self.path else { return Ok(Path::default()) };
        let path = Path::parse(text)?;
        let spelling = path.to_string();
        if *text == spelling {
            Ok(path)
        } else {
            Err(format!("a path has one spelling only: write this one as {spelling}").into())
        }
    }

    /// Returns the method. `http_get` defaults to GET. `http_request` requires a method, and refuses one that only reads, because
    /// the Skill may have other rules for `http_get`.
    pub(super) fn method(&self, reads_only: bool) -> Result<Method, Error> {
        match self.method {
            None if reads_only => Ok(Method::Get),
            None => Err("method is missing".into()),
            Some(method) if reads_only && !method.is_read() => {
                Err(format!("this tool only reads, and {method} does not").into())
            }
            Some(method) if !reads_only && method.is_read() => {
                Err(format!("{method} only reads: use http_get for it").into())
            }
            Some(method) => Ok(method),
        }
    }

    /// Returns the query with its `?`, or an empty text.
    pub(super) fn query(&self) -> Result<String, Error> {
        let mut query = String::new();
        for (name, value) in &self.query {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => {
                        return Err(
                            "a value of query must be a text, a number, true or false, or a list of these".into()
                        );
                    }
                };
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(&escape_query(name));
                query.push('=');
                query.push_str(&escape_query(&text));
            }
        }
        Ok(query)
    }

    /// Returns the headers, with names in lower case. The header that authenticates the call is not allowed.
    pub(super) fn headers(&self, auth_header: Option<&str>) -> Result<Headers, Error> {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            let name = name.to_ascii_lowercase();
            if !CALL_HEADERS.contains(&name.as_str())
                || auth_header.is_some_and(|header| header.eq_ignore_ascii_case(&name))
            {
                return Err(format!("only these headers are allowed: {}", CALL_HEADERS.join(", ")).into());
            }
            if headers.iter().any(|(other, _)| *other == name) {
                return Err(format!("the header {name} is a duplicate").into());
            }
            if value.len() > MAX_HEADER_BYTES || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return Err(format!(
                    "the header {name} has more than {MAX_HEADER_BYTES} bytes, or characters other than printable ASCII"
                )
                .into());
            }
            headers.push((name, value.clone()));
        }
        Ok(headers)
    }

    /// Returns the headers with the content type of the body, and the body.
    pub(super) fn body(&self, method: Method, mut headers: Headers) -> Result<(Headers, Option<String>), Error> {
        let (body, content_type) = match (&self.json, &self.body) {
            (None, None) => return Ok((headers, None)),
            (Some(_), Some(_)) => return Err("a call can have json or body, not both".into()),
            (Some(json), None) => (json.to_string(), "application/json"),
            (None, Some(body)) => (body.clone(), "text/plain; charset=utf-8"),
        };
        if method.is_read() {
            return Err(format!("{method} must not have a body").into());
        }
        if !headers.iter().any(|(name, _)| name == CONTENT_TYPE) {
            headers.push((CONTENT_TYPE.to_owned(), content_type.to_owned()));
        }
        Ok((headers, Some(body)))
    }
}
