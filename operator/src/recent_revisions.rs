//! The revisions of Skills that were read last, because many Jobs start on one revision.

use crate::caches::Caches;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of revisions that are kept. A `ConfigMap` has at most 1 MiB.
const MAX_KEPT: usize = 8;

/// The revisions that were read last, the newest at the end. They are immutable, so the UID of a `ConfigMap` stands for its content.
#[derive(Debug, Default)]
pub struct RecentRevisions(Mutex<VecDeque<Arc<ConfigMap>>>);

impl RecentRevisions {
    /// Returns a revision by its name. Reads it unless it is kept and exists.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn read(
        &self,
        client: &Client,
        caches: &Caches,
        (namespace, name): (&str, &str),
    ) -> kube::Result<Option<Arc<ConfigMap>>> {
        let uid = caches.revisions.get(namespace, name).and_then(|known| known.metadata.uid.clone());
        if let Some(kept) = uid.and_then(|uid| self.find(&uid)) {
            return Ok(Some(kept));
        }
        let read = Api::namespaced(client.clone(), namespace).get_opt(name).await?.map(Arc::new);
        if let Some(revision) = &read {
            self.keep(revision);
        }
        Ok(read)
    }

    /// Returns the revision with this UID, if it is kept, which is then the newest.
    fn find(&self, uid: &str) -> Option<Arc<ConfigMap>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = kept.iter().position(|revision| revision.metadata.uid.as_deref() == Some(uid))?;
        let revision = kept.remove(position)?;
        kept.push_back(revision.clone());
        Some(revision)
    }

    /// Keeps a revision in place of the oldest one. One that may still be changed is not kept.
    fn keep(&self, revision: &Arc<ConfigMap>) {
        if revision.immutable != Some(true) {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Jobs that start at once read the same revision.
        kept.retain(|other| other.metadata.uid != revision.metadata.uid);
        kept.push_back(revision.clone());
        if kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn revision(uid: &str, immutable: bool) -> Arc<ConfigMap> {
        let metadata = ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() };
        Arc::new(ConfigMap { metadata, immutable: Some(immutable), ..ConfigMap::default() })
    }

    #[test]
    fn the_revision_that_was_not_used_for_the_longest_time_is_dropped() {
        let recent = RecentRevisions::default();
        for number in 0..MAX_KEPT {
            recent.keep(&revision(&number.to_string(), true));
        }
        assert!(recent.find("0").is_some());
        recent.keep(&revision("new", true));
        recent.keep(&revision("new", true));
        assert_eq!(recent.find("1"), None);
        assert!(recent.find("2").is_some(), "the same revision takes one place");
        assert!(recent.find("0").is_some() && recent.find("new").is_some());
    }

    #[test]
    fn a_revision_that_may_be_changed_is_not_kept() {
        let recent = RecentRevisions::default();
        recent.keep(&revision("a", false));
        assert_eq!(recent.find("a"), None);
    }
}
