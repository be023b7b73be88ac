//! Opens the watches that fill the caches, and records the progress of each.

use super::cache::{Cache, CacheOptions, Feed, Watched};
use crate::client;
use crate::health::Liveness;
use k8s_openapi::NamespaceResourceScope;
use kube::core::Resource;
use kube::runtime::watcher;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Creates the caches of an operator that serves these namespaces, or all if there are none. Holds their feeds.
pub(super) struct Watches<'a> {
    pub(super) client: &'a Client,
    pub(super) namespaces: &'a [String],
    pub(super) liveness: &'a Liveness,
    pub(super) feeds: Vec<Feed>,
}

impl Watches<'_> {
    /// Creates the cache of a kind in the served namespaces: one watch in each, or one for all.
    pub(super) fn of_tenants<K>(&mut self, config: watcher::Config, options: CacheOptions<K>) -> Cache<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        if self.namespaces.is_empty() {
            return self.of_cluster(config, options);
        }
        let watched = self.namespaces.iter().map(|namespace| Watched {
            api: Api::namespaced(self.client_of::<K>(&config, Some(namespace.as_str())), namespace),
            config: config.clone(),
            scope: Some(namespace.clone()),
        });
        let watched: Vec<Watched<K>> = watched.collect();
        self.cache(watched, options)
    }

    /// Creates the cache of the served namespaces themselves. With a list of namespaces, the operator may watch only these, by name.
    pub(super) fn of_namespaces<K>(&mut self, config: &watcher::Config, options: CacheOptions<K>) -> Cache<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        if self.namespaces.is_empty() {
            return self.of_cluster(config.clone(), options);
        }
        let watched = self.namespaces.iter().map(|namespace| Watched {
            api: Api::all(self.client_of::<K>(config, Some(namespace.as_str()))),
            config: config.clone().fields(&format!("metadata.name={namespace}")),
            scope: Some(namespace.clone()),
        });
        let watched: Vec<Watched<K>> = watched.collect();
        self.cache(watched, options)
    }

    /// Creates the cache of a kind in the whole cluster.
    pub(super) fn of_cluster<K>(&mut self, config: watcher::Config, options: CacheOptions<K>) -> Cache<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let api = Api::all(self.client_of::<K>(&config, None));
        self.cache(vec![Watched { api, config, scope: None }], options)
    }

    fn cache<K>(&mut self, watched: Vec<Watched<K>>, options: CacheOptions<K>) -> Cache<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let (cache, feed) = Cache::new(watched, options);
        self.feeds.push(feed);
        cache
    }

    /// Returns the client of one watch. It records the progress of this watch, so that a watch that lives does not hide one that is dead.
    fn client_of<K: Resource<DynamicType = ()>>(&self, config: &watcher::Config, scope: Option<&str>) -> Client {
        let name = name(&K::plural(&()), scope, config.label_selector.as_deref());
        // A watch that is never answered is known too.
        self.liveness.record_watch_progress(&name);
        let liveness = self.liveness.clone();
        client::observed(self.client, move || liveness.record_watch_progress(&name))
    }
}

/// Returns the name of a watch, for people. Each watch of an operator has another name.
fn name(plural: &str, scope: Option<&str>, label_selector: Option<&str>) -> String {
    let details: Vec<&str> = scope.into_iter().chain(label_selector).collect();
    if details.is_empty() { plural.to_owned() } else { format!("{plural} ({})", details.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Caches;
    use crate::job::fixtures::api::FakeApi;
    use axum::http::Request;
    use bloomery_crds::names;
    use futures::StreamExt;
    use kube::client::Body;
    use std::time::Duration;
    use tower::{ServiceExt, service_fn};

    #[tokio::test]
    async fn each_watch_has_a_name_of_its_own() {
        let count = |namespaces: &[&str]| {
            let liveness = Liveness::default();
            let namespaces: Vec<String> = namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
            let _ = Caches::new(&FakeApi::default().client(), &namespaces, &liveness);
            liveness.last_progress().len()
        };
        assert_eq!(count(&[]), 17, "one for each cache");
        assert_eq!(
            count(&["acme", "beta"]),
            2 * 15 + 2,
            "the admission policies and their bindings have cluster scope"
        );
        assert_eq!(name("pods", None, None), "pods");
        assert_eq!(name("pods", Some("acme"), Some("a=b")), "pods (acme, a=b)");
    }

    #[tokio::test]
    async fn a_watch_that_is_never_answered_makes_no_progress_while_the_others_do() {
        let server = FakeApi::default().router();
        let service = service_fn(move |request: Request<Body>| {
            let is_dead = request.uri().path() == "/api/v1/pods";
            let answer = server.clone().oneshot(request);
            async move { if is_dead { std::future::pending().await } else { answer.await } }
        });
        let liveness = Liveness::default();
        let (_caches, feed) = Caches::new(&Client::new(service, "default"), &[], &liveness);
        let begun = liveness.last_progress();
        let feeding = tokio::spawn(feed.for_each(|()| async {}));
        let silent = || {
            let last = liveness.last_progress();
            let silent = begun.iter().filter(|(watch, begun)| last.get(*watch) == Some(*begun));
            silent.map(|(watch, _)| watch.clone()).collect::<Vec<_>>()
        };
        let answered = async {
            while silent().len() > 1 {
                tokio::task::yield_now().await;
            }
        };
        // Without progress, the assertion names the watches.
        let _ = tokio::time::timeout(Duration::from_mins(1), answered).await;
        assert_eq!(silent(), [format!("pods ({}={})", names::LABEL_MANAGED_BY, names::MANAGER)]);
        feeding.abort();
    }
}
