//! Trees of values with their places in the document.

use bloomery_crds::text::bounded;
use serde_json::Number;
use std::fmt;
use std::rc::Rc;

/// The longest name in a path, in bytes. Longer names are cut.
const MAX_SHOWN_NAME_BYTES: usize = 64;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text {
        text: String,
        /// True if the text is written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The line and column of the key, with the path of the value.
    pub(crate) place: Place,
    pub(crate) node: Node,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The column in characters, from 1.
    pub(crate) column: usize,
    pub(crate) path: Path,
}

/// The path from the root of a document to a value. Paths with a common beginning share it in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path(Option<Rc<Step>>);

#[derive(Debug, PartialEq, Eq)]
struct Step {
    before: Path,
    last: Segment,
}

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Name(String),
    Index(usize),
}

impl Path {
    /// Returns the path of a field of the object at this path.
    pub(crate) fn of_field(&self, name: &str) -> Self {
        self.with(Segment::Name(bounded(name, MAX_SHOWN_NAME_BYTES)))
    }

    /// Returns the path of an item of the list at this path.
    pub(crate) fn of_item(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    fn with(&self, last: Segment) -> Self {
        Self(Some(Rc::new(Step { before: self.clone(), last })))
    }
}

impl fmt::Display for Path {
    /// Writes the path, such as `policy.approvals[0].when`. A name with unusual characters is in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = Vec::new();
        let mut path = self;
        while let Some(step) = &path.0 {
            segments.push(&step.last);
            path = &step.before;
        }
        for (nth, segment) in segments.into_iter().rev().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Name(name) => {
                    if nth > 0 {
                        f.write_str(".")?;
                    }
                    let is_usual = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
                    if !name.is_empty() && name.chars().all(is_usual) {
                        f.write_str(name)?;
                    } else {
                        write!(f, "{name:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl Place {
    /// Returns the place of a document as a whole.
    pub(crate) fn start() -> Self {
        Self { line: 1, column: 1, path: Path::default() }
    }

    /// Returns the place of a missing field: its path, at the line and column of the object that should hold it.
    pub(crate) fn of_field(&self, name: &str) -> Self {
        Self { line: self.line, column: self.column, path: self.path.of_field(name) }
    }
}

impl Value {
    /// Returns a text that is not in the document.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), plain: false }
    }
}

impl Entry {
    /// Returns an entry that is not in the document, with the place of the value that it comes from.
    pub(crate) fn at(name: &str, place: &Place, value: Value) -> Self {
        Self { name: name.to_owned(), place: place.clone(), node: Node { place: place.clone(), value } }
    }
}

impl Node {
    /// Returns the value of a key, if the node is a map that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// Returns the value of a key, if the node is a map that has it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Returns the text, if the value is a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text { .. } => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }

    /// Sets the path of the node, and makes those of all values in it begin with that path.
    pub(crate) fn rebase(&mut self, path: &Path) {
        self.place.path = path.clone();
        match &mut self.value {
            Value::List(nodes) => {
                for (index, node) in nodes.iter_mut().enumerate() {
                    node.rebase(&path.of_item(index));
                }
            }
            Value::Map(entries) => {
                for Entry { name, place, node } in entries {
                    place.path = path.of_field(name);
                    node.rebase(&place.path);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text { .. } => {}
        }
    }

    /// Returns the whole value as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text { text, .. } => text.clone().into(),
            Value::List(nodes) => nodes.iter().map(Node::json).collect(),
            Value::Map(entries) => entries.iter().map(|entry| (entry.name.clone(), entry.node.json())).collect(),
        }
    }
}

/// Returns the line, the column and the document path of the field at an API path, such as `spec.policy.approvals[0].when`.
/// For a missing field, returns those of its nearest ancestor.
pub fn locate(root: &Node, path: &str) -> (usize, usize, String) {
    let mut node = root;
    let mut place = &root.place;
    for segment in path.split(['.', '[']) {
        let next = match segment.strip_suffix(']') {
            Some(index) => match &node.value {
                Value::List(nodes) => index.parse().ok().and_then(|index: usize| nodes.get(index)),
                _ => None,
            },
            None => node.get(segment),
        };
        let Some(next) = next else { break };
        node = next;
        place = &node.place;
    }
    (place.line, place.column, place.to_string())
}
