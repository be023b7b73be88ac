//! Lists and maps that are still being read.

use crate::finding::Finding;
use crate::tree::{Entry, Node, Place, Value};
use std::collections::HashMap;

/// A list or map that is still open.
pub(super) struct Open {
    pub(super) place: Place,
    pub(super) content: Content,
}

pub(super) enum Content {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: HashMap<String, usize>, key: Option<Key> },
}

/// The key of the next value of a map; a key that cannot be used has no name.
pub(super) struct Key {
    pub(super) name: Option<String>,
    pub(super) place: Place,
}

/// Makes a key of a node, and reports why it cannot be used.
pub(super) fn usable_key(node: Node, map: &Place, seen: &mut HashMap<String, usize>) -> (Key, Option<Finding>) {
    let Value::Text { text, .. } = &node.value else {
        let fault = Finding::error(&node.place, format!("a key must be text, and this is {}", node.kind()));
        return (Key { name: None, place: node.place }, Some(fault));
    };
    let place = Place { path: map.path.name(text), ..node.place };
    if let Some(line) = seen.get(text) {
        let fault = Finding::error(&place, format!("the key stands twice, first on line {line}"))
            .hint("keep one of the two: readers of YAML do not agree which of them counts");
        return (Key { name: None, place }, Some(fault));
    }
    seen.insert(text.clone(), place.line);
    (Key { name: Some(text.clone()), place }, None)
}
