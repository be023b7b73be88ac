//! Which objects of a cache have which word, so that finding them costs no look at the others.

use kube::core::{Resource, ResourceExt};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// The names of objects, by their namespace and their word. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Index(Arc<RwLock<Words>>);

type Words = HashMap<(String, String), HashSet<String>>;

impl Index {
    /// The names of the objects with a word.
    pub(super) fn names(&self, namespace: &str, word: &str) -> Vec<String> {
        let words = self.0.read().unwrap_or_else(PoisonError::into_inner);
        words.get(&(namespace.to_owned(), word.to_owned())).into_iter().flatten().cloned().collect()
    }

    /// Puts an object that has this word in the place of the one before it, which had that.
    pub(super) fn turn<K: Resource>(&self, object: &K, before: Option<String>, after: Option<String>) {
        if before == after {
            return;
        }
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let mut words = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = before {
            let key = (namespace.clone(), before);
            if let Some(names) = words.get_mut(&key) {
                names.remove(&name);
                if names.is_empty() {
                    words.remove(&key);
                }
            }
        }
        if let Some(after) = after {
            words.entry((namespace, after)).or_default().insert(name);
        }
    }

    /// Begins anew with these objects.
    pub(super) fn fill<K: Resource>(&self, objects: &[Arc<K>], word: fn(&K) -> Option<String>) {
        let mut words = Words::new();
        for object in objects {
            if let Some(word) = word(object) {
                let key = (object.namespace().unwrap_or_default(), word);
                words.entry(key).or_default().insert(object.name_any());
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = words;
    }
}
