//! The redactor: all secrets of a run, and every way of taking them out of texts.

use super::error::Error;
use super::forms::MAX_VALUE_BYTES;
use super::patterns::Patterns;
use super::source::Source;
use bloomery_crds::run::{JobPart, ResourceSource};
use bloomery_crds::text::bounded;
use bloomery_files::{Finder, Marks, Secrets};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Knows the secrets of a run, and keeps them out of texts. All clones are one; the first knows none.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<Known>>);

/// What is known, and where more of it comes from.
#[derive(Default)]
struct Known {
    sources: Vec<Source>,
    values: Vec<(String, Vec<u8>)>,
    patterns: Arc<Patterns>,
    /// The first secret whose value is larger than what is looked for.
    oversized: Option<String>,
}

/// Without the values.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Returns a redactor that has a value and cannot search for it. For tests.
    #[doc(hidden)]
    pub fn blind() -> Self {
        let redactor = Self::default();
        redactor.with(|known| known.patterns = Arc::new(Patterns::built([("word", &b"hunter22"[..])], |_| None)));
        redactor
    }

    /// Watches every secret that a Job's part names: the keys of its models, and what it binds.
    pub fn watch_job(&self, part: &JobPart) {
        for model in &part.models {
            if let Some(key) = &model.api_key {
                self.watch(&model.name, Path::new(&key.path));
            }
        }
        for resource in &part.resources {
            if let ResourceSource::Secret(file) = &resource.source {
                self.watch(&resource.name, Path::new(&file.path));
            }
        }
    }

    /// Watches a file that holds, or will hold, a secret value; `name` is what stands in its place.
    pub fn watch(&self, name: &str, file: &Path) {
        self.with(|known| known.sources.push(Source::new(name, file)));
        self.refresh();
    }

    /// Reads the files that have changed.
    pub fn refresh(&self) {
        self.with(|known| {
            let read: Vec<_> = known.sources.iter_mut().filter_map(Source::changed).collect();
            known.learn(read);
        });
    }

    /// Learns a value that is about to be used. What surrounds a value in its file does not matter.
    pub fn learn(&self, name: &str, value: &[u8]) {
        self.with(|known| known.learn([(name.to_owned(), value.trim_ascii().to_owned())]));
    }

    /// A text without the values.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.patterns().redact(text)
    }

    /// The same, without a copy where nothing is found.
    pub fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// The first `most` bytes of a text without the values: what is found there may go on for [`Redactor::reach`] bytes behind
    /// them.
    pub fn beginning<'t>(&self, text: &'t str, most: usize) -> Cow<'t, str> {
        self.patterns().beginning(text, most)
    }

    /// How many bytes of a text one value takes at most, however it is written.
    pub fn reach(&self) -> usize {
        self.patterns().reach()
    }

    /// What may be passed on of a text that somebody else wrote: on one line, at most `max` bytes. Servers like to
    /// quote what they refuse. Values go first, so that no cut leaves a part of one.
    pub fn quote(&self, text: &str, max: usize) -> String {
        bounded(&self.text(text).split_whitespace().collect::<Vec<_>>().join(" "), max)
    }

    /// Takes the values out of JSON: of its texts, its names, and its numbers, which become texts.
    pub fn json(&self, value: &mut Value) {
        redact(&self.patterns(), value);
    }

    /// The text of some JSON, which stays JSON.
    pub fn json_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
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

    /// The same for bytes that are to be JSON.
    pub fn json_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, str> {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => self.json_text(text),
            Cow::Owned(text) => Cow::Owned(self.json_text(&text).into_owned()),
        }
    }

    /// Whether nothing can be looked for, though there are values: every text then counts as one that holds them.
    pub fn is_blind(&self) -> bool {
        self.patterns().are_blind()
    }

    /// Returns why texts cannot be kept free of the values that are known now.
    pub(crate) fn error(&self) -> Option<Error> {
        self.with(|known| match &known.oversized {
            _ if known.patterns.are_blind() => Some(Error::Blind),
            Some(name) => Some(Error::Oversized(name.clone())),
            None => None,
        })
    }

    /// The names of the secrets that a text holds.
    pub fn names_in(&self, text: &str) -> Vec<String> {
        self.patterns().names_in(text).into_iter().map(str::to_owned).collect()
    }

    /// What stands in place of the secrets that are known now, wherever one is taken out of a text.
    pub fn marks(&self) -> Vec<String> {
        self.patterns().marks()
    }

    /// The secrets as those know them who read files, as they are known now.
    pub fn secrets(&self) -> Secrets {
        let patterns = self.patterns();
        Secrets::new(Marks::new(patterns.marks()), patterns)
    }

    pub(crate) fn patterns(&self) -> Arc<Patterns> {
        self.with(|known| known.patterns.clone())
    }

    /// Nothing may be logged within `act`: log lines are redacted.
    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn learn(&mut self, read: impl IntoIterator<Item = (String, Vec<u8>)>) {
        let before = self.values.len();
        for (name, value) in read {
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
