//! The redactor, which holds all secrets of a run.

use super::error::Error;
use super::forms::MAX_VALUE_BYTES;
use super::patterns::Patterns;
use super::source::Source;
use bloomery_crds::run::{ExternalMcp, JobPart, ResourceSource};
use bloomery_crds::text::bounded;
use bloomery_files::{Marks, SecretFinder, Secrets};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Redacts the secrets of a run. Clones share the secrets. The default redactor has no secrets.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<Known>>);

/// The known secrets, and the files that they come from.
#[derive(Default)]
struct Known {
    sources: Vec<Source>,
    /// The names and values.
    values: Vec<(String, Vec<u8>)>,
    patterns: Arc<Patterns>,
    /// The name of the first secret whose value is larger than [`MAX_VALUE_BYTES`].
    oversized: Option<String>,
}

/// Hides the values.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Returns a redactor whose values are too large to search for. For tests.
    #[doc(hidden)]
    pub fn too_large() -> Self {
        let redactor = Self::default();
        redactor.with(|known| known.patterns = Arc::new(Patterns::build([("word", &b"hunter22"[..])], |_| None)));
        redactor
    }

    /// Watches the files of all secrets of a Job: the keys of its models, and the secrets that it binds.
    pub fn watch_job(&self, part: &JobPart) {
        for model in &part.models {
            if let Some(key) = &model.api_key {
                self.watch(&model.name, Path::new(&key.path));
            }
        }
        if let Some(external) = &part.external_mcp {
            self.watch_server(external);
        }
        for resource in &part.resources {
            if let ResourceSource::Secret(file) = &resource.source {
                self.watch(&resource.name, Path::new(&file.path));
            }
        }
    }

    /// Watches the files of the secrets that each request to an MCP server outside of the cluster carries.
    pub fn watch_server(&self, external: &ExternalMcp) {
        for header in &external.headers {
            self.watch(&header.name, Path::new(&header.file.path));
        }
    }

    /// Watches a file that contains, or will contain, a secret value. The mark of the value contains `name`.
    pub fn watch(&self, name: &str, file: &Path) {
        self.with(|known| known.sources.push(Source::new(name, file)));
        self.refresh();
    }

    /// Reads the files that have changed.
    pub fn refresh(&self) {
        self.with(|known| {
            let changed: Vec<_> = known.sources.iter_mut().filter_map(Source::read_if_changed).collect();
            known.learn(changed);
        });
    }

    /// Adds a value, without the whitespace around it.
    pub fn learn(&self, name: &str, value: &[u8]) {
        self.with(|known| known.learn([(name.to_owned(), value.trim_ascii().to_owned())]));
    }

    /// Returns a text with all values redacted.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.patterns().redact(text)
    }

    /// Returns a text with all values redacted. Copies the text only if it contains a value.
    pub fn redact_owned(&self, text: String) -> String {
        match self.redact_text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// Returns the first `max_bytes` bytes of a text with all values redacted. To find a value that crosses the cut, `text` must
    /// continue for [`Redactor::max_value_length`] bytes after the cut.
    pub fn redact_beginning<'t>(&self, text: &'t str, max_bytes: usize) -> Cow<'t, str> {
        self.patterns().redact_beginning(text, max_bytes)
    }

    /// Returns the largest number of bytes that one value can take in a text, in any notation.
    pub fn max_value_length(&self) -> usize {
        self.patterns().max_secret_length()
    }

    /// Redacts a text of another program, and returns it on one line of at most `max_bytes` bytes. Servers often quote the request in
    /// their error messages. The text is redacted before it is cut, so no part of a value remains.
    pub fn quote(&self, text: &str, max_bytes: usize) -> String {
        bounded(&self.redact_text(text).split_whitespace().collect::<Vec<_>>().join(" "), max_bytes)
    }

    /// Redacts JSON: its strings, its field names, and its numbers. A number that contains a value becomes a string.
    pub fn redact_json(&self, value: &mut Value) {
        redact(&self.patterns(), value);
    }

    /// Redacts the text of a JSON document. The result is valid JSON, too. A text that is not JSON is redacted as plain text.
    pub fn redact_json_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let patterns = self.patterns();
        if !patterns.is_in(text) {
            return Cow::Borrowed(text);
        }
        match serde_json::from_str(text) {
            Ok(mut value) => {
                redact(&patterns, &mut value);
                Cow::Owned(value.to_string())
            }
            Err(_) => patterns.redact(text),
        }
    }

    /// Redacts the bytes of a JSON document like [`Redactor::redact_json_text`]. Invalid UTF-8 is replaced.
    pub fn redact_json_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, str> {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => self.redact_json_text(text),
            Cow::Owned(text) => Cow::Owned(self.redact_json_text(&text).into_owned()),
        }
    }

    /// Returns whether the values are too large to search for. Every text is then redacted completely.
    pub fn is_too_large(&self) -> bool {
        self.patterns().is_too_large()
    }

    /// Returns the reason that the current values cannot be redacted, if there is one.
    pub(crate) fn error(&self) -> Option<Error> {
        self.with(|known| match &known.oversized {
            _ if known.patterns.is_too_large() => Some(Error::TooLarge),
            Some(name) => Some(Error::Oversized(name.clone())),
            None => None,
        })
    }

    /// Returns the names of the secrets in a text.
    pub fn names_in(&self, text: &str) -> Vec<String> {
        self.patterns().names_in(text).into_iter().map(str::to_owned).collect()
    }

    /// Returns the marks that replace the current values.
    pub fn marks(&self) -> Vec<String> {
        self.patterns().marks()
    }

    /// Returns the current secrets for the file tools.
    pub fn secrets(&self) -> Secrets {
        let patterns = self.patterns();
        Secrets::new(Marks::new(patterns.marks()), patterns)
    }

    pub(crate) fn patterns(&self) -> Arc<Patterns> {
        self.with(|known| known.patterns.clone())
    }

    /// Calls `act` with the secrets locked. `act` must not log, because redacting the log line would lock them again.
    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn learn(&mut self, values: impl IntoIterator<Item = (String, Vec<u8>)>) {
        let before = self.values.len();
        for (name, value) in values {
            if value.len() > MAX_VALUE_BYTES {
                self.oversized.get_or_insert(name.clone());
            }
            if !value.is_empty() && self.values.iter().all(|(other, known)| (other, known) != (&name, &value)) {
                self.values.push((name, value));
            }
        }
        if self.values.len() > before {
            let values = self.values.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
            self.patterns = Arc::new(Patterns::new(values));
        }
    }
}

/// Redacts a JSON value and everything in it.
fn redact(patterns: &Patterns, value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            if let Cow::Owned(redacted) = patterns.redact(&number.to_string()) {
                *value = Value::String(redacted);
            }
        }
        Value::String(text) => {
            if let Cow::Owned(redacted) = patterns.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(patterns, item)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| redact(patterns, field));
            if fields.keys().any(|name| patterns.is_in(name)) {
                let named = std::mem::take(fields).into_iter();
                fields.extend(named.map(|(name, field)| (patterns.redact(&name).into_owned(), field)));
            }
        }
    }
}
