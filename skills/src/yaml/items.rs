//! The items of a `List`, which `kubectl get -o yaml` prints.

use crate::document::Document;
use crate::tree::{Node, Path, Value};

/// Returns the items of a `List` of the core API as documents of their own, or the document itself. The paths in an item begin at the item,
/// and its lines are those of the input.
pub(super) fn split(mut document: Document) -> Vec<Document> {
    let has = |name: &str, text: &str| document.root.get(name).and_then(Node::text) == Some(text);
    let is_list = has("apiVersion", "v1") && has("kind", "List");
    let items = document.root.get_mut("items").filter(|_| is_list).map(|items| &mut items.value);
    let Some(Value::List(items)) = items else { return vec![document] };
    let items = std::mem::take(items).into_iter().filter(|item| item.value != Value::Null);
    let as_document = |mut item: Node| {
        let refused = refused_in(&item.place.to_string(), &document.refused);
        item.rebase(&Path::default());
        Document { root: item, refused }
    };
    items.map(as_document).collect()
}

/// Returns the refused values of the item at a path. Those of other items are left out.
fn refused_in(item: &str, refused: &[String]) -> Vec<String> {
    let of_item = |path: &String| match path.strip_prefix(item) {
        Some(within) => Some(within.trim_start_matches('.').to_owned()),
        None => (!path.starts_with("items[")).then(|| path.clone()),
    };
    refused.iter().filter_map(of_item).collect()
}
