//! The cache of one kind, and the changes that controllers are woken by.

use super::index::Index;
use futures::stream::{BoxStream, Stream, StreamExt};
use kube::Api;
use kube::core::{DeserializeGuard, Resource};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// An object of ours as it is stored, which an older or newer schema may have written.
pub type Guarded<K> = DeserializeGuard<K>;

/// The stream that fills a cache while it is polled; it ends only when it is dropped.
pub type Feed = BoxStream<'static, ()>;

/// How many changes a controller may be behind before it looks at everything instead.
const MAX_PENDING_CHANGES: usize = 1024;

/// The cache of one kind.
pub struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    index: Index,
    changes: broadcast::Sender<Change<K>>,
    /// Not the store's own readiness: of several tasks that wait for that, kube 5.0 wakes only the last.
    filled: watch::Receiver<bool>,
}

/// How the objects of a kind are kept.
pub struct CacheOptions<K> {
    trim: fn(&mut K),
    index_key: fn(&K) -> Option<String>,
    announces: fn(&K, &K) -> bool,
}

impl<K> CacheOptions<K> {
    /// Each is trimmed before it is kept.
    pub fn trimmed(trim: fn(&mut K)) -> Self {
        Self { trim, index_key: |_| None, announces: |_, _| true }
    }

    /// Each is found by its index_key, where it has one ([`Cache::found_by`]).
    #[must_use]
    pub fn indexed_by(self, index_key: fn(&K) -> Option<String>) -> Self {
        Self { index_key, ..self }
    }

    /// Nobody is told of a change that is no news, given what stood and what stands.
    #[must_use]
    pub fn announcing(self, announces: fn(&K, &K) -> bool) -> Self {
        Self { announces, ..self }
    }
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
    /// Makes a cache, and what feeds it.
    pub fn new(api: Api<K>, config: watcher::Config, options: CacheOptions<K>) -> (Self, Feed) {
        Self::fed_by(watcher(api, config).default_backoff(), options)
    }

    fn fed_by<S>(watch: S, options: CacheOptions<K>) -> (Self, Feed)
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
                // Nobody listens where this replica does not lead.
                let _ = sender.send(change);
            }
        });
        (Self { store, index, changes, filled }, feed.boxed())
    }

    /// The object of a name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }

    /// The objects of a namespace with a word ([`CacheOptions::found_by`]).
    pub fn found_by(&self, namespace: &str, index_key: &str) -> Vec<Arc<K>> {
        self.index.names(namespace, index_key).iter().filter_map(|name| self.get(namespace, name)).collect()
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

/// Takes what a watch tells into a store and its index.
struct StoreWriter<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    writer: Writer<K>,
    index: Index,
    options: CacheOptions<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> StoreWriter<K> {
    /// Takes one event; gives what is to be told of it, once it is in the store.
    fn apply(&mut self, event: watcher::Result<watcher::Event<K>>) -> Option<Change<K>> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch failed and is tried again");
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
            // What vanished while nobody watched is not told one by one.
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
    async fn everybody_who_waits_for_a_filled_cache_is_woken() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, CacheOptions::trimmed(|_| {}));
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
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, CacheOptions::trimmed(|_| {}));
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
        let (cache, feed) = Cache::<ServiceAccount>::fed_by(events, CacheOptions::trimmed(|_| {}));
        let mut changes = cache.changes();
        for _ in 0..=MAX_PENDING_CHANGES {
            watch.unbounded_send(Ok(Event::Apply(account("a")))).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        assert!(matches!(changes.next().await, Some(Change::Anything)));
        assert!(matches!(changes.next().await, Some(Change::Touched(_))));
    }

    /// An account that is found by this key, and whose changes are announced where that differs.
    fn with_key(name: &str, index_key: Option<&str>) -> ServiceAccount {
        let mut account = account(name);
        account.metadata.labels = index_key.map(|key| [("key".to_owned(), key.to_owned())].into());
        account
    }

    fn index_key(account: &ServiceAccount) -> Option<String> {
        account.metadata.labels.as_ref()?.get("key").cloned()
    }

    #[tokio::test]
    async fn objects_are_found_by_their_word_whatever_becomes_of_it() {
        let (watch, events) = mpsc::unbounded();
        let (cache, mut feed) = Cache::fed_by(events, CacheOptions::trimmed(|_| {}).indexed_by(index_key));
        let mut after = async |event| {
            watch.unbounded_send(Ok(event)).unwrap();
            feed.next().await.unwrap();
            let names = |key| {
                let found = cache.found_by("acme", key);
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
        // Another watch: what is gone is not found any more.
        after(Event::Init).await;
        after(Event::InitApply(with_key("d", Some("x")))).await;
        assert_eq!(after(Event::InitDone).await, both("d", ""));
        assert_eq!(cache.found_by("other", "x").len(), 0);
    }

    #[tokio::test]
    async fn nobody_is_told_of_what_is_no_news() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = Cache::fed_by(
            events,
            CacheOptions::trimmed(|_| {}).announcing(|before, after| index_key(before) != index_key(after)),
        );
        let changes = cache.changes();
        let a = |index_key: Option<&str>| with_key("a", index_key);
        let same =
            [Event::Apply(a(None)), Event::Apply(a(None)), Event::Apply(a(Some("x"))), Event::Apply(a(Some("x")))];
        for event in same.into_iter().chain([Event::Delete(a(Some("x"))), Event::Apply(a(Some("x")))]) {
            watch.unbounded_send(Ok(event)).unwrap();
        }
        drop(watch);
        feed.for_each(|()| async {}).await;
        let told = changes.map(|change| match change {
            Change::Touched(account) => index_key(&account),
            Change::Anything => Some("*".to_owned()),
        });
        let x = || Some("x".to_owned());
        assert_eq!(told.take(4).collect::<Vec<_>>().await, [None, x(), x(), x()]);
        assert!(cache.get("acme", "a").is_some());
    }
}
