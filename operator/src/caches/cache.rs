//! The cache of one kind, and the changes that controllers are woken by.

use super::Feed;
use futures::stream::{BoxStream, Stream, StreamExt};
use kube::Api;
use kube::core::Resource;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, reflector, store};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

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
        Self::fed_by(watcher(api, config).default_backoff(), trim)
    }

    fn fed_by<S>(watch: S, trim: fn(&mut K)) -> (Self, Feed)
    where
        S: Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    {
        let (store, writer): (Store<K>, Writer<K>) = store();
        let (changes, _) = broadcast::channel(BACKLOG);
        let (tell_filled, filled) = watch::channel(false);
        let teller = changes.clone();
        let feed = reflector(writer, watch.modify(trim)).map(move |event| {
            if matches!(event, Ok(watcher::Event::InitDone)) {
                tell_filled.send_replace(true);
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::mpsc;
    use k8s_openapi::api::core::v1::ServiceAccount;
    use watcher::Event;

    fn account(name: &str) -> ServiceAccount {
        let mut account = ServiceAccount::default();
        account.metadata.namespace = Some("acme".to_owned());
        account.metadata.name = Some(name.to_owned());
        account
    }

    #[tokio::test]
    async fn everybody_who_waits_for_a_filled_cache_is_woken() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, |_| {});
        let cache = Arc::new(cache);
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let cache = cache.clone();
                tokio::spawn(async move { cache.synced().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for event in [Event::Init, Event::InitApply(account("a")), Event::InitDone] {
            watch.unbounded_send(Ok(event)).unwrap();
        }
        tokio::spawn(feed.for_each(|()| async {}));
        for task in waiting {
            task.await.unwrap();
        }
        assert!(cache.get("acme", "a").is_some());
        assert!(cache.get("other", "a").is_none());
    }

    #[tokio::test]
    async fn changes_name_their_object_and_gaps_say_so() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, |_| {});
        let changes = cache.changes();
        for event in [Event::Init, Event::InitApply(account("a")), Event::InitDone, Event::Delete(account("a"))] {
            watch.unbounded_send(Ok(event)).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        let names = changes.map(|change| match change {
            Change::Touched(account) => account.metadata.name.clone().unwrap(),
            Change::Anything => "*".to_owned(),
        });
        assert_eq!(names.take(2).collect::<Vec<_>>().await, ["*", "a"]);
    }

    #[tokio::test]
    async fn who_falls_behind_looks_at_everything() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, |_| {});
        let mut changes = cache.changes();
        for _ in 0..=BACKLOG {
            watch.unbounded_send(Ok(Event::Apply(account("a")))).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        assert!(matches!(changes.next().await, Some(Change::Anything)));
        assert!(matches!(changes.next().await, Some(Change::Touched(_))));
    }
}
