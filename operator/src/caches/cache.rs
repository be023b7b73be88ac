//! The cache of one kind, and the stream of its changes.

use super::index::Index;
use futures::stream::{BoxStream, StreamExt, select_all};
use kube::Api;
use kube::core::{Resource, ResourceExt};
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

/// The events of one watch.
type Watch<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;

/// The namespace whose objects a watch covers, or the name of its only object, if the kind has cluster scope. None: all objects.
pub type Scope = Option<String>;

/// What a watch covers. The scopes of the watches of a cache do not overlap.
pub struct Watched<K> {
    /// The API of the objects.
    pub api: Api<K>,
    /// The selectors.
    pub config: watcher::Config,
    /// The scope of `api` and `config`.
    pub scope: Scope,
}

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
    /// Creates a cache of everything that is watched, and its feed.
    pub fn new(watched: Vec<Watched<K>>, options: CacheOptions<K>) -> (Self, Feed) {
        let opened = watched.into_iter().map(|Watched { api, config, scope }| {
            let watch: Watch<K> = watcher(api, config).default_backoff().boxed();
            (scope, watch)
        });
        Self::with_watches(opened.collect(), options)
    }

    /// Creates a cache of the objects of several watches, each with its scope.
    fn with_watches(watches: Vec<(Scope, Watch<K>)>, options: CacheOptions<K>) -> (Self, Feed) {
        let (store, writer): (Store<K>, Writer<K>) = store();
        let (changes, _) = broadcast::channel(MAX_PENDING_CHANGES);
        let (filled_sender, filled) = watch::channel(false);
        let (sender, index) = (changes.clone(), Index::default());
        let trim = options.trim;
        let (listings, watches): (Vec<Listing<K>>, Vec<_>) = watches
            .into_iter()
            .enumerate()
            .map(|(place, (scope, watch))| {
                (Listing::new(scope), watch.modify(trim).map(move |event| (place, event)).boxed())
            })
            .unzip();
        let mut store_writer = StoreWriter { store: store.clone(), writer, index: index.clone(), options, listings };
        let feed = select_all(watches).map(move |(place, event)| {
            let change = store_writer.apply(place, event);
            if store_writer.listings.iter().all(|listing| listing.is_complete) {
                filled_sender.send_if_modified(|filled| !std::mem::replace(filled, true));
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

/// Applies the events of all watches to a store and its index.
struct StoreWriter<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    writer: Writer<K>,
    index: Index,
    options: CacheOptions<K>,
    listings: Vec<Listing<K>>,
}

/// The objects that a watch lists when it starts. One that covers all objects needs no list of its own: the store has one.
struct Listing<K> {
    scope: Scope,
    listed: Vec<K>,
    is_complete: bool,
}

impl<K> Listing<K> {
    fn new(scope: Scope) -> Self {
        Self { scope, listed: Vec::new(), is_complete: false }
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> StoreWriter<K> {
    /// Applies one event of the watch at this place. Returns the change to announce once the event is in the store.
    fn apply(&mut self, place: usize, event: watcher::Result<watcher::Event<K>>) -> Option<Change<K>> {
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
        let event = self.store_event(place, event)?;
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

    /// Stores an event, and returns it. The list of a watch with a scope is kept until it is complete: the store replaces all of its
    /// objects when a list is complete, and must keep those of other scopes. Returns none for an event that waits so.
    fn store_event(&mut self, place: usize, event: watcher::Event<K>) -> Option<watcher::Event<K>> {
        let listing = self.listings.get_mut(place)?;
        listing.is_complete |= matches!(event, watcher::Event::InitDone);
        match (&listing.scope, event) {
            (Some(_), watcher::Event::Init) => listing.listed.clear(),
            (Some(_), watcher::Event::InitApply(object)) => listing.listed.push(object),
            (Some(scope), watcher::Event::InitDone) => {
                let kept = self.store.state_filter(|object| !is_in_scope(object, scope));
                self.writer.apply_watcher_event(&watcher::Event::Init);
                let kept = kept.into_iter().map(|object| K::clone(&object));
                for object in kept.chain(listing.listed.drain(..)) {
                    self.writer.apply_watcher_event(&watcher::Event::InitApply(object));
                }
                self.writer.apply_watcher_event(&watcher::Event::InitDone);
                return Some(watcher::Event::InitDone);
            }
            (_, event) => {
                self.writer.apply_watcher_event(&event);
                return Some(event);
            }
        }
        None
    }
}

/// Returns whether an object belongs to a namespace, or is the object of cluster scope with this name.
fn is_in_scope<K: Resource>(object: &K, scope: &str) -> bool {
    match &object.meta().namespace {
        Some(namespace) => namespace == scope,
        None => object.name_any() == scope,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::mpsc;
    use k8s_openapi::api::core::v1::ServiceAccount;
    use watcher::Event;

    fn account(name: &str) -> ServiceAccount {
        account_in("acme", name)
    }

    fn account_in(namespace: &str, name: &str) -> ServiceAccount {
        let mut account = ServiceAccount::default();
        account.metadata.namespace = Some(namespace.to_owned());
        account.metadata.name = Some(name.to_owned());
        account
    }

    type Events = mpsc::UnboundedReceiver<watcher::Result<Event<ServiceAccount>>>;

    fn cache(events: Events) -> (Cache<ServiceAccount>, Feed) {
        cache_with(events, CacheOptions::trimmed(|_| {}))
    }

    fn cache_with(events: Events, options: CacheOptions<ServiceAccount>) -> (Cache<ServiceAccount>, Feed) {
        Cache::with_watches(vec![(None, events.boxed())], options)
    }

    #[tokio::test]
    async fn every_task_that_waits_for_a_filled_cache_is_woken() {
        let (watch, events) = mpsc::unbounded();
        let (cache, feed) = cache(events);
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
        let (cache, feed) = cache(events);
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
        let (cache, feed) = cache(events);
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
        let (cache, mut feed) = cache_with(events, CacheOptions::trimmed(|_| {}).indexed_by(index_key));
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
        let (cache, feed) = cache_with(
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

    #[tokio::test]
    async fn a_watch_of_one_namespace_replaces_only_the_objects_of_this_namespace() {
        let ((acme, acme_events), (beta, beta_events)) = (mpsc::unbounded(), mpsc::unbounded());
        let watches =
            vec![(Some("acme".to_owned()), acme_events.boxed()), (Some("beta".to_owned()), beta_events.boxed())];
        let (cache, mut feed) = Cache::<ServiceAccount>::with_watches(watches, CacheOptions::trimmed(|_| {}));
        let names = |cache: &Cache<ServiceAccount>| {
            let mut names: Vec<String> = cache.store().state().iter().map(|account| account.name_any()).collect();
            names.sort();
            names.join(" ")
        };
        let mut send = async |watch: &mpsc::UnboundedSender<_>, events: Vec<Event<ServiceAccount>>| {
            for event in events {
                watch.unbounded_send(Ok(event)).unwrap();
                feed.next().await;
            }
        };
        let list = |objects: &[ServiceAccount]| {
            let listed = objects.iter().cloned().map(Event::InitApply);
            std::iter::once(Event::Init).chain(listed).chain([Event::InitDone]).collect::<Vec<_>>()
        };
        send(&acme, list(&[account("a"), account("b")])).await;
        assert!(!*cache.filled.borrow(), "the other namespace is not listed yet");
        send(&beta, vec![Event::Init, Event::InitApply(account_in("beta", "c"))]).await;
        assert_eq!(names(&cache), "a b", "an incomplete list changes nothing");
        send(&beta, vec![Event::InitDone]).await;
        assert!(*cache.filled.borrow());
        assert_eq!(names(&cache), "a b c");
        send(&acme, vec![Event::Apply(account("d")), Event::Delete(account("b"))]).await;
        assert_eq!(names(&cache), "a c d");
        // The watch starts again: `a` was deleted meanwhile.
        send(&acme, list(&[account("d")])).await;
        assert_eq!(names(&cache), "c d");
    }

    #[test]
    fn an_object_of_cluster_scope_is_its_own_scope() {
        let mut namespace = k8s_openapi::api::core::v1::Namespace::default();
        namespace.metadata.name = Some("acme".to_owned());
        assert!(is_in_scope(&namespace, "acme"));
        assert!(!is_in_scope(&namespace, "beta"));
        assert!(is_in_scope(&account("beta"), "acme"));
        assert!(!is_in_scope(&account("beta"), "beta"));
    }
}
