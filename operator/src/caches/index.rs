//! The index of a cache: finds objects by a key without a scan.

use kube::core::{Resource, ResourceExt};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// The names of objects, by namespace and key. Clones share one index.
#[derive(Debug, Clone, Default)]
pub(super) struct Index(Arc<RwLock<NamesByKey>>);

type NamesByKey = HashMap<(String, String), HashSet<String>>;

impl Index {
    /// The names of the objects of a namespace with an index key.
    pub(super) fn names(&self, namespace: &str, index_key: &str) -> Vec<String> {
        let names_by_key = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names_by_key.get(&(namespace.to_owned(), index_key.to_owned())).into_iter().flatten().cloned().collect()
    }

    /// Moves an object from its earlier key to its current one.
    pub(super) fn update<K: Resource>(&self, object: &K, before: Option<String>, after: Option<String>) {
        if before == after {
            return;
        }
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let mut names_by_key = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = before {
            let key = (namespace.clone(), before);
            if let Some(names) = names_by_key.get_mut(&key) {
                names.remove(&name);
                if names.is_empty() {
                    names_by_key.remove(&key);
                }
            }
        }
        if let Some(after) = after {
            names_by_key.entry((namespace, after)).or_default().insert(name);
        }
    }

    /// Replaces the index by these objects.
    pub(super) fn replace_all<K: Resource>(&self, objects: &[Arc<K>], index_key: fn(&K) -> Option<String>) {
        let mut names_by_key = NamesByKey::new();
        for object in objects {
            if let Some(index_key) = index_key(object) {
                let key = (object.namespace().unwrap_or_default(), index_key);
                names_by_key.entry(key).or_default().insert(object.name_any());
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names_by_key;
    }
}
