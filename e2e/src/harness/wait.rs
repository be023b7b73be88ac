//! Waiting for what should become so.

use std::fmt::Debug;
use std::time::Duration;

use bloomery_crds::conditions::{self, ConditionType};
use futures::{StreamExt, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long anything may take on a busy machine before a story gives up.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// How often something that cannot be watched is asked for.
const PULSE: Duration = Duration::from_millis(100);

/// Waits until an object is as `wanted`, and returns it so.
///
/// Panics after [`PATIENCE`] with the object's last state.
pub async fn until<K>(api: &Api<K>, name: &str, what: &str, wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    match watched(api, name, |object| object.filter(|object| wanted(object)).cloned()).await {
        Ok(found) => found,
        Err(last) => panic!("waited {PATIENCE:?} for {what}: {name} is now\n{last}"),
    }
}

/// Waits until there is no object of this name, or only one with another UID.
pub async fn gone<K>(api: &Api<K>, name: &str, uid: Option<&str>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let is_gone = |object: Option<&K>| match object {
        None => Some(()),
        Some(object) => (uid.is_some() && object.uid().as_deref() != uid).then_some(()),
    };
    if let Err(last) = watched(api, name, is_gone).await {
        panic!("waited {PATIENCE:?} for {name} to go: it is now\n{last}");
    }
}

/// Whether there is no object of this name now.
pub async fn is_gone<K>(api: &Api<K>, name: &str) -> bool
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    api.get_opt(name).await.unwrap_or_else(|error| panic!("{name} cannot be read: {error}")).is_none()
}

/// Asks until there is an answer: for what is behind HTTP, where nothing can be watched.
pub async fn eventually<T, E: Debug>(what: &str, ask: impl AsyncFn() -> Result<T, E>) -> T {
    let started = tokio::time::Instant::now();
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(last) if started.elapsed() > PATIENCE => panic!("waited {PATIENCE:?} for {what}: {last:#?}"),
            Err(_) => tokio::time::sleep(PULSE).await,
        }
    }
}

/// The message of a condition that has this reason and names all of `parts`.
pub(super) fn says(conditions: &[Condition], kind: ConditionType, reason: &str, parts: &[&str]) -> Option<String> {
    let condition = conditions::find(conditions, kind).filter(|condition| condition.reason == reason)?;
    parts.iter().all(|part| condition.message.contains(part)).then(|| condition.message.clone())
}

/// Watches an object until `pick` gives something; else its last state as text.
async fn watched<K, T>(api: &Api<K>, name: &str, pick: impl Fn(Option<&K>) -> Option<T>) -> Result<T, String>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let states = watch_object(api.clone(), name);
    pin_mut!(states);
    let mut last = "not there".to_owned();
    let look = async {
        loop {
            match states.next().await {
                Some(Ok(state)) => {
                    if let Some(found) = pick(state.as_ref()) {
                        return found;
                    }
                    last = state.map_or_else(|| "not there".to_owned(), |object| text(&object));
                }
                // The watcher backs off and comes back by itself.
                Some(Err(error)) => last = format!("{last}\n(and the watch broke: {error})"),
                None => unreachable!("a watch does not end"),
            }
        }
    };
    // Bound to a name: the borrow of `last` ends with the future.
    let ended = tokio::time::timeout(PATIENCE, look).await;
    ended.map_err(|_| last)
}

/// An object as people read it, without what only machines do.
pub(super) fn text<K: Resource + Clone + Serialize>(object: &K) -> String {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    serde_yaml::to_string(&object).unwrap_or_else(|error| error.to_string())
}
