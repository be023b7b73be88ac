//! What a call asks for, read and bounded.

use super::address::{Path, component};
use bloomery_crds::v1alpha1::{CALL_HEADERS, Method};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest value of a header, in bytes.
const MAX_HEADER: usize = 1024;

const CONTENT_TYPE: &str = "content-type";

/// The arguments of a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) resource: Option<String>,
    path: Option<String>,
    method: Option<Method>,
    #[serde(default)]
    query: Map<String, Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
    body: Option<String>,
}

/// What is there, `null` too, which is a body as well as another.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

type Headers = Vec<(String, String)>;

impl Asked {
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        Self::deserialize(arguments).map_err(|error| format!("the arguments cannot be read: {error}"))
    }

    /// The path; that of the URL itself, where none is said. It is taken in one spelling only, the one that is sent: a
    /// condition of the Skill, which compares the argument, could be got round by another.
    pub(super) fn path(&self) -> Result<Path, String> {
        let Some(text) = &self.path else { return Ok(Path::default()) };
        let path = Path::parse(text)?;
        let spelt = path.to_string();
        if *text == spelt { Ok(path) } else { Err(format!("a path has one spelling only: write this one as {spelt}")) }
    }

    /// GET, where a tool that only reads does not say; another has to say, and does not read: what the Skill says of one
    /// of the two tools could be got round by the other.
    pub(super) fn method(&self, reads_only: bool) -> Result<Method, String> {
        match self.method {
            None if reads_only => Ok(Method::Get),
            None => Err("method is missing".to_owned()),
            Some(method) if reads_only && !method.is_read() => {
                Err(format!("this tool only reads, and {method} does not"))
            }
            Some(method) if !reads_only && method.is_read() => Err(format!(
                "this tool is for what may change something, and a {method} only reads: http_get does that"
            )),
            Some(method) => Ok(method),
        }
    }

    /// The query with its `?`; nothing where there is none.
    pub(super) fn query(&self) -> Result<String, String> {
        let mut query = String::new();
        for (name, value) in &self.query {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => {
                        return Err(
                            "a value of query is a text, a number, true or false, or a list of these".to_owned()
                        );
                    }
                };
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(&component(name));
                query.push('=');
                query.push_str(&component(&text));
            }
        }
        Ok(query)
    }

    /// The headers, their names in lower case. None of them may be the one that carries the credential.
    pub(super) fn headers(&self, proof: Option<&str>) -> Result<Headers, String> {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            let name = name.to_ascii_lowercase();
            if !CALL_HEADERS.contains(&name.as_str()) || proof.is_some_and(|proof| proof.eq_ignore_ascii_case(&name)) {
                return Err(format!("a call sets no headers but {}", CALL_HEADERS.join(", ")));
            }
            if headers.iter().any(|(other, _)| *other == name) {
                return Err(format!("the header {name} stands there twice"));
            }
            if value.len() > MAX_HEADER || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return Err(format!(
                    "the header {name} holds more than {MAX_HEADER} bytes, or others than printable ASCII"
                ));
            }
            headers.push((name, value.clone()));
        }
        Ok(headers)
    }

    /// The body, and the headers with what it is.
    pub(super) fn body(&self, method: Method, mut headers: Headers) -> Result<(Headers, Option<String>), String> {
        let (body, kind) = match (&self.json, &self.body) {
            (None, None) => return Ok((headers, None)),
            (Some(_), Some(_)) => return Err("a call has json or body, and not both".to_owned()),
            (Some(json), None) => (json.to_string(), "application/json"),
            (None, Some(body)) => (body.clone(), "text/plain; charset=utf-8"),
        };
        if method.is_read() {
            return Err(format!("a {method} has no body"));
        }
        if !headers.iter().any(|(name, _)| name == CONTENT_TYPE) {
            headers.push((CONTENT_TYPE.to_owned(), kind.to_owned()));
        }
        Ok((headers, Some(body)))
    }
}
