//! A lock for each namespace in which an object is being created.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError, Weak};
use tokio::sync::Mutex;

/// The locks that are in use, by namespace.
#[derive(Default)]
pub(super) struct CreationLocks(SyncMutex<HashMap<String, Weak<Mutex<()>>>>);

impl CreationLocks {
    /// Returns the lock of a namespace.
    pub(super) fn lock_of(&self, namespace: &str) -> Arc<Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(namespace).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(namespace.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_creations_in_one_namespace_wait_for_each_other() {
        let locks = CreationLocks::default();
        let acme = locks.lock_of("acme");
        let held = acme.try_lock().unwrap();
        assert!(locks.lock_of("acme").try_lock().is_err());
        assert!(locks.lock_of("globex").try_lock().is_ok());
        drop(held);
        assert!(locks.lock_of("acme").try_lock().is_ok());
        drop(acme);
        assert_eq!(locks.0.lock().unwrap().values().filter(|lock| lock.strong_count() > 0).count(), 0);
    }
}
