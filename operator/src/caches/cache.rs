//! The cache of one kind, and the changes that controllers are woken by.

use super::Feed;
use futures::stream::{BoxStream, StreamExt};
use kube::Api;
use kube::core::Resource;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, reflector, store};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};
use tokio::sync::broadcast::error::RecvError;

/// How many changes a controller may be behind before it looks at everything instead.
const BACKLOG: usize = 1024;

/// The cache of one kind.
pub struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    changes: broadcast::Sender<Change<K>>,
    /// Not the store's own readiness: of several tasks that wait for that, kube 5.0 wakes only the last.
    filled: watch::Receiver<bool>,
}

/// What happened to the objects of a kind.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// This object was made, changed or deleted; the cache says which.
    Touched(Arc<K>),
    /// Anything may have happened: the watch began anew, or its changes came faster than they were read.
    Anything,
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Makes a cache, and what feeds it. Each object is trimmed before it is kept.
    pub fn new(api: Api<K>, config: watcher::Config, trim: fn(&mut K)) -> (Self, Feed) {
        let (store, writer): (Store<K>, Writer<K>) = store();
        let (changes, _) = broadcast::channel(BACKLOG);
        let (filler, filled) = watch::channel(false);
        let teller = changes.clone();
        let watch = watcher(api, config).default_backoff().modify(trim);
        let feed = reflector(writer, watch).map(move |event| {
            if matches!(event, Ok(watcher::Event::InitDone)) {
                filler.send_replace(true);
            }
            if let Some(change) = change(event) {
                // Nobody listens where this replica does not lead.
                let _ = teller.send(change);
            }
        });
        (Self { store, changes, filled }, feed.boxed())
    }

    /// The object of a name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// The objects of a namespace that a test holds for.
    pub fn select(&self, namespace: &str, test: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.store.state_filter(|object| object.meta().namespace.as_deref() == Some(namespace) && test(object))
    }

    /// The store itself, for what walks over everything.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// Waits until the cache was filled once.
    pub async fn synced(&self) {
        // The feed is gone only when the process ends.
        let _ = self.filled.clone().wait_for(|filled| *filled).await;
    }

    /// The changes from now on. Read the cache after subscribing, and nothing is missed.
    pub fn changes(&self) -> BoxStream<'static, Change<K>> {
        let receiver = self.changes.subscribe();
        futures::stream::unfold(receiver, |mut receiver| async move {
            match receiver.recv().await {
                Ok(change) => Some((change, receiver)),
                Err(RecvError::Lagged(_)) => Some((Change::Anything, receiver)),
                Err(RecvError::Closed) => None,
            }
        })
        .boxed()
    }
}

fn change<K: Resource<DynamicType = ()>>(event: watcher::Result<watcher::Event<K>>) -> Option<Change<K>> {
    match event {
        Ok(watcher::Event::Apply(object) | watcher::Event::Delete(object)) => Some(Change::Touched(Arc::new(object))),
        // What vanished while nobody watched is not told one by one.
        Ok(watcher::Event::InitDone) => Some(Change::Anything),
        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
        Err(error) => {
            tracing::warn!(kind = %K::kind(&()), %error, "the watch failed and is tried again");
            None
        }
    }
}
