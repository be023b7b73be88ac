//! The parts of a Skill that are not in its `skill.json` or in the frontmatter of its `SKILL.md`.

use super::cycles::Subskill;
use super::directory::FileFindings;
use super::options::RepositoryOptions;
use crate::checked::CheckedDocument;
use crate::tree::{Entry, Node, Place, Value};
use std::collections::BTreeMap;

/// A converted skill.
#[derive(Debug)]
pub struct ConvertedSkill {
    /// The check of its `skill.json` or `SKILL.md`. The Skill is in it if that file has no error.
    pub checked: CheckedDocument,
    /// The findings about its other files, by their paths in its directory.
    pub others: FileFindings,
    /// The subskills that its features name.
    pub subskills: Vec<Subskill>,
}

impl ConvertedSkill {
    /// Returns the result for a skill of which nothing is read yet.
    pub(super) fn new() -> Self {
        let root = Node { place: Place::start(), value: Value::Null };
        Self { checked: CheckedDocument::of_skill(root), others: FileFindings::new(), subskills: Vec::new() }
    }
}

/// The parts that come from other files.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The documentation.
    pub(super) docs: Option<String>,
    /// The scripts, by file name.
    pub(super) scripts: BTreeMap<String, String>,
}

/// Returns a document of Markdown without the line breaks around it. A document without content is none.
pub(super) fn trimmed_document(text: &str) -> Option<String> {
    let trimmed = text.trim_matches(['\n', '\r']);
    (!trimmed.trim().is_empty()).then(|| trimmed.to_owned())
}

/// Adds the parts and the options to a spec.
pub(super) fn add(spec: &mut Node, parts: Parts, options: &RepositoryOptions) {
    let place = spec.place.clone();
    let Value::Map(fields) = &mut spec.value else { return };
    let at = |name: &str| place.of_field(name);
    fields.extend(parts.docs.map(|docs| Entry::at("docs", &at("docs"), Value::text(docs))));
    // Scripts without an image are an error that was reported.
    if let Some(image) = options.script_image.as_ref().filter(|_| !parts.scripts.is_empty()) {
        let files = texts(&at("scripts"), parts.scripts);
        fields.push(map("scripts", &at("scripts"), [("image", Value::text(image)), ("files", files)]));
    }
    if !options.notes.is_empty() {
        let notes = texts(&at("memory"), options.notes.clone());
        fields.push(map("memory", &at("memory"), [("notes", notes)]));
    }
    if let Some(model) = &options.model {
        fields.push(map("engine", &at("engine"), [("model", Value::text(model))]));
    }
}

/// Returns an object of these fields.
pub(super) fn map(name: &str, place: &Place, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Entry {
    let fields = fields.into_iter().map(|(name, value)| Entry::at(name, place, value));
    Entry::at(name, place, Value::Map(fields.collect()))
}

fn texts(place: &Place, texts: BTreeMap<String, String>) -> Value {
    Value::Map(texts.into_iter().map(|(name, text)| Entry::at(&name, place, Value::text(text))).collect())
}
