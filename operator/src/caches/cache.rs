//! The cache of one kind, and the stream of its changes.

use super::index::Index;
use futures::stream::{BoxStream, Stream, StreamExt};
use kube::Api;
use kube::core::Resource;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// The stream that fills a cache while it is polled. It does not end by itself.
pub type Feed = BoxStream<'static, ()>;

/// The maximum number of changes that wait for a subscriber. If more wait, the subscriber receives [`Change::Anything`]
/// instead of the oldest.
const MAX_PENDING_CHANGES: usize = 1024;

/// The cache of one kind.
pub struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    index: Index,
    changes: broadcast::Sender<Change<K>>,
    /// True once the cache was filled. `Store::wait_until_ready` is not used, because in kube 5.0 it wakes only the last
    /// of several waiting tasks.
    filled: watch::Receiver<bool>,
}

/// The options of a cache: the form in which it stores objects, their index key, and the updates that it announces.
pub struct CacheOptions<K> {
    trim: fn(&mut K),
    index_key: fn(&K) -> Option<String>,
    announces: fn(&K, &K) -> bool,
}

impl<K> CacheOptions<K> {
    /// Trims each object before it is stored.
    pub fn trimmed(trim: fn(&mut K)) -> Self {
        Self { trim, index_key: |_| None, announces: |_, _| true }
    }

    /// Indexes the objects by this key, for those that have one ([`Cache::find_by_key`]).
    #[must_use]
    pub fn indexed_by(self, index_key: fn(&K) -> Option<String>) -> Self {
        Self { index_key, ..self }
    }

    /// Announces only the updates for which this returns true, given the object before and after. Created and deleted
    /// objects are always announced.
    #[must_use]
    pub fn announcing(self, announces: fn(&K, &K) -> bool) -> Self {
        Self { announces, ..self }
    }
}

/// A change of the objects of one kind.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// This object was created, changed or deleted. The cache has the current state.
    Touched(Arc<K>),
    /// Any object may have changed: the watch started again, or the subscriber was too slow.
    Anything,
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Creates a cache and its feed.
    pub fn new(api: Api<K>, config: watcher::Config, options: CacheOptions<K>) -> (Self, Feed) {
        Self::with_watch(watcher(api, config).default_backoff(), options)
    }

    fn with_watch<S>(watch: S, options: CacheOptions<K>) -> (Self, Feed)
    where
        S: Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    {
        let (store, writer): (Store<K>, Writer<K>) = store();
        let (changes, _) = broadcast::channel(MAX_PENDING_CHANGES);
        let (filled_sender, filled) = watch::channel(false);
        let (sender, index) = (changes.clone(), Index::default());
        let trim = options.trim;
        let mut store_writer = StoreWriter { store: store.clone(), writer, index: index.clone(), options };
        let feed = watch.modify(trim).map(move |event| {
            let is_filled = matches!(event, Ok(watcher::Event::InitDone));
            let change = store_writer.apply(event);
            if is_filled {
                filled_sender.send_replace(true);
            }
            if let Some(change) = change {
                // Sending fails if nobody subscribes, as in a replica that does not lead.
                let _ = sender.send(change);
            }
        });
        (Self { store, index, changes, filled }, feed.boxed())
    }

    /// The object with a name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// The objects of a namespace with an index key ([`CacheOptions::indexed_by`]).
    pub fn find_by_key(&self, namespace: &str, index_key: &str) -> Vec<Arc<K>> {
        self.index.names(namespace, index_key).iter().filter_map(|name| self.get(namespace, name)).collect()
    }

    /// The objects of a namespace that match a predicate.
    pub fn select(&self, namespace: &str, test: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.store.state_filter(|object| object.meta().namespace.as_deref() == Some(namespace) && test(object))
    }

    /// The underlying store, for a scan of all objects.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// Waits until the cache was filled once.
    pub async fn wait_until_synced(&self) {
        // An error means that the feed was dropped, which happens only when the process ends.
        let _ = self.filled.clone().wait_for(|filled| *filled).await;
    }

    /// The changes from now on. Subscribe before reading the cache, so that no change is missed.
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

/// Applies watch events to a store and its index.
struct StoreWriter<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    writer: Writer<K>,
    index: Index,
    options: CacheOptions<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> StoreWriter<K> {
    /// Applies one event. Returns the change to announce once the event is in the store.
    fn apply(&mut self, event: watcher::Result<watcher::Event<K>>) -> Option<Change<K>> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch failed and is retried");
                return None;
            }
        };
        let before = match &event {
            watcher::Event::Apply(object) | watcher::Event::Delete(object) => {
                self.store.get(&ObjectRef::from_obj(object))
            }
            watcher::Event::Init | watcher::Event::InitApply(_) | watcher::Event::InitDone => None,
        };
        self.writer.apply_watcher_event(&event);
        let key_before = || before.as_deref().and_then(self.options.index_key);
        match event {
            watcher::Event::Apply(object) => {
                self.index.update(&object, key_before(), (self.options.index_key)(&object));
                let announces = before.is_none_or(|before| (self.options.announces)(&before, &object));
                announces.then(|| Change::Touched(Arc::new(object)))
            }
            watcher::Event::Delete(object) => {
                self.index.update(&object, key_before(), None);
                Some(Change::Touched(Arc::new(object)))
            }
            // Objects that were deleted while the watch was down are not announced one by one.
            watcher::Event::InitDone => {
                self.index.replace_all(&self.store.state(), self.options.index_key);
                Some(Change::Anything)
            }
            watcher::Event::Init | watcher::Event::InitApply(_) => None,
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
    async fn every_task_that_waits_for_a_filled_cache_is_woken() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::with_watch(events, CacheOptions::trimmed(|_| {}));
        let cache = Arc::new(cache);
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let cache = cache.clone();
                tokio::spawn(async move { cache.wait_until_synced().await })
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
    async fn a_change_names_its_object_and_a_restarted_watch_names_none() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::with_watch(events, CacheOptions::trimmed(|_| {}));
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
    async fn a_subscriber_that_falls_behind_is_informed_that_anything_may_have_changed() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::with_watch(events, CacheOptions::trimmed(|_| {}));
        let mut changes = cache.changes();
        for _ in 0..=MAX_PENDING_CHANGES {
            watch.unbounded_send(Ok(Event::Apply(account("a")))).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        assert!(matches!(changes.next().await, Some(Change::Anything)));
        assert!(matches!(changes.next().await, Some(Change::Touched(_))));
    }

    /// An account with this index key.
    fn with_key(name: &str, index_key: Option<&str>) -> ServiceAccount {
        let mut account = account(name);
        account.metadata.labels = index_key.map(|key| [("key".to_owned(), key.to_owned())].into());
        account
    }

    fn index_key(account: &ServiceAccount) -> Option<String> {
        account.metadata.labels.as_ref()?.get("key").cloned()
    }

    #[tokio::test]
    async fn objects_are_found_by_their_current_key() {
        let (watch, events) = mpsc::unbounded();
        let (cache, mut feed) = Cache::with_watch(events, CacheOptions::trimmed(|_| {}).indexed_by(index_key));
        let mut after = async |event| {
            watch.unbounded_send(Ok(event)).unwrap();
            feed.next().await.unwrap();
            let names = |key| {
                let found = cache.find_by_key("acme", key);
                let mut names: Vec<_> = found.iter().filter_map(|account| account.metadata.name.clone()).collect();
                names.sort();
                names.join(" ")
            };
            (names("x"), names("y"))
        };
        let both = |x: &str, y: &str| (x.to_owned(), y.to_owned());
        assert_eq!(after(Event::Init).await, both("", ""));
        for name in ["a", "b"] {
            assert_eq!(after(Event::InitApply(with_key(name, Some("x")))).await, both("", ""));
        }
        assert_eq!(after(Event::InitDone).await, both("a b", ""));
        assert_eq!(after(Event::Apply(with_key("a", Some("y")))).await, both("b", "a"));
        assert_eq!(after(Event::Apply(with_key("c", Some("y")))).await, both("b", "a c"));
        assert_eq!(after(Event::Apply(with_key("c", None))).await, both("b", "a"));
        assert_eq!(after(Event::Delete(with_key("b", Some("x")))).await, both("", "a"));
        // The watch starts again: objects that were deleted meanwhile are not found any more.
        after(Event::Init).await;
        after(Event::InitApply(with_key("d", Some("x")))).await;
        assert_eq!(after(Event::InitDone).await, both("d", ""));
        assert_eq!(cache.find_by_key("other", "x").len(), 0);
    }

    #[tokio::test]
    async fn only_selected_changes_are_announced() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::with_watch(
            events,
            CacheOptions::trimmed(|_| {}).announcing(|before, after| index_key(before) != index_key(after)),
        );
        let changes = cache.changes();
        let a = |index_key: Option<&str>| with_key("a", index_key);
        let updates =
            [Event::Apply(a(None)), Event::Apply(a(None)), Event::Apply(a(Some("x"))), Event::Apply(a(Some("x")))];
        for event in updates.into_iter().chain([Event::Delete(a(Some("x"))), Event::Apply(a(Some("x")))]) {
            watch.unbounded_send(Ok(event)).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        let announced = changes.map(|change| match change {
            Change::Touched(account) => index_key(&account),
            Change::Anything => Some("*".to_owned()),
        });
        let x = || Some("x".to_owned());
        assert_eq!(announced.take(4).collect::<Vec<_>>().await, [None, x(), x(), x()]);
        assert!(cache.get("acme", "a").is_some());
    }
}
