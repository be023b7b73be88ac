//! Lists and maps whose end has not been read yet.

use crate::finding::Finding;
use crate::tree::{Entry, Node, Place, Value};
use std::collections::HashMap;

/// A list or map whose end has not been read yet.
pub(super) struct OpenCollection {
    pub(super) place: Place,
    pub(super) content: Content,
}

pub(super) enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// The line of each key.
        seen: HashMap<String, usize>,
        /// The key whose value is read next. `None` if a key is read next.
        key: Option<Key>,
    },
}

/// The key of the next value of a map. `name` is `None` if the key cannot be used.
pub(super) struct Key {
    pub(super) name: Option<String>,
    pub(super) place: Place,
}

/// Converts a node to a key of the map at `map`. `seen` has the lines of the earlier keys. Also returns a finding if the node
/// cannot be used as a key.
pub(super) fn to_key(node: Node, map: &Place, seen: &mut HashMap<String, usize>) -> (Key, Option<Finding>) {
    let Value::Text { text, .. } = &node.value else {
        let finding = Finding::error(&node.place, format!("a key must be text, and this is {}", node.kind()));
        return (Key { name: None, place: node.place }, Some(finding));
    };
    let place = Place { path: map.path.of_field(text), ..node.place };
    if let Some(line) = seen.get(text) {
        let finding = Finding::error(&place, format!("the key is in the map twice, first on line {line}"))
            .hint("keep one of the two: YAML parsers disagree about which one counts");
        return (Key { name: None, place }, Some(finding));
    }
    seen.insert(text.clone(), place.line);
    (Key { name: Some(text.clone()), place }, None)
}
