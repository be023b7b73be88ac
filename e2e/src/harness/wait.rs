//! Waiting for states of objects and servers.

use std::fmt::Debug;
use std::time::Duration;

use bloomery_crds::conditions::{self, ConditionType};
use futures::{StreamExt, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The time limit for any state. It suits a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// The interval between requests for a state that cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until an object is as `wanted`, and returns it. `what` describes the state in the failure message.
///
/// Panics after [`PATIENCE`] with the object's last state.
pub async fn until<K>(api: &Api<K>, name: &str, what: &str, wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    match watched(api, name, |object| object.filter(|object| wanted(object)).cloned()).await {
        Ok(found) => found,
        Err(LastState(last)) => panic!("waited {PATIENCE:?} for {what}: {name} is now\n{last}"),
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
    if let Err(LastState(last)) = watched(api, name, is_gone).await {
        panic!("waited {PATIENCE:?} for {name} to be deleted: it is now\n{last}");
    }
}

/// Returns whether there is no object of this name.
pub async fn is_gone<K>(api: &Api<K>, name: &str) -> bool
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    api.get_opt(name).await.unwrap_or_else(|error| panic!("{name} cannot be read: {error}")).is_none()
}

/// Polls `ask` until it succeeds. It is for states behind HTTP, which cannot be watched.
pub async fn eventually<T, E: Debug>(what: &str, ask: impl AsyncFn() -> Result<T, E>) -> T {
    let started = tokio::time::Instant::now();
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(last) if started.elapsed() > PATIENCE => panic!("waited {PATIENCE:?} for {what}: {last:#?}"),
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Returns the message of a condition with this reason, if the message has all of `parts`.
pub(super) fn condition_message(
    conditions: &[Condition],
    kind: ConditionType,
    reason: &str,
    parts: &[&str],
) -> Option<String> {
    let condition = conditions::find(conditions, kind).filter(|condition| condition.reason == reason)?;
    parts.iter().all(|part| condition.message.contains(part)).then(|| condition.message.clone())
}

/// The last state of an object that was not as wanted in time, as text.
struct LastState(String);

/// Watches an object until `pick` returns a value.
///
/// # Errors
/// `pick` returned none within [`PATIENCE`].
async fn watched<K, T>(api: &Api<K>, name: &str, pick: impl Fn(Option<&K>) -> Option<T>) -> Result<T, LastState>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let states = watch_object(api.clone(), name);
    pin_mut!(states);
    let mut last = "absent".to_owned();
    let look = async {
        loop {
            match states.next().await {
                Some(Ok(state)) => {
                    if let Some(found) = pick(state.as_ref()) {
                        return found;
                    }
                    last = state.map_or_else(|| "absent".to_owned(), |object| text(&object));
                }
                // The watcher retries by itself, with a backoff.
                Some(Err(error)) => last = format!("{last}\n(and the watch failed: {error})"),
                None => unreachable!("a watch does not end"),
            }
        }
    };
    // In a separate variable, so that the borrow of `last` ends with the future.
    let ended = tokio::time::timeout(PATIENCE, look).await;
    ended.map_err(|_| LastState(last))
}

/// Returns an object as YAML without its managed fields.
pub(super) fn text<K: Resource + Clone + Serialize>(object: &K) -> String {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    serde_yaml::to_string(&object).unwrap_or_else(|error| error.to_string())
}
