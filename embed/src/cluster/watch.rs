//! Watches objects until a condition is met.

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

/// The timeout of one watch request, in seconds. The request is then repeated.
const WATCH_SECONDS: u32 = 240;

/// The time without events after which the client ends a watch and lists the objects again. It is longer than [`WATCH_SECONDS`],
/// so the API server usually ends the watch first.
const WATCH_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// The timeout of a list request.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of consecutive failures after which an error is returned.
const MAX_FAILURES: u32 = 5;

/// The delay before a retry.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Selects the watched objects.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    labels: Option<String>,
    fields: Option<String>,
}

impl Selector {
    /// Selects the object with this name.
    pub fn name(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), ..Self::default() }
    }

    /// Selects the objects with a label.
    pub fn label(label: &str, value: &str) -> Self {
        Self { labels: Some(format!("{label}={value}")), ..Self::default() }
    }

    /// Returns the parameters of a list request.
    pub fn list_params(&self) -> ListParams {
        let Self { labels, fields } = self;
        ListParams { label_selector: labels.clone(), field_selector: fields.clone(), ..ListParams::default() }
    }

    fn watch_params(&self) -> WatchParams {
        let Self { labels, fields } = self;
        WatchParams {
            label_selector: labels.clone(),
            field_selector: fields.clone(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        }
    }
}

/// Waits until `inspect` returns a value, and returns that value. Calls `inspect` with all selected objects, by name: first when they
/// are listed, then after each change.
///
/// # Errors
/// If the API server refuses the request, or fails repeatedly.
pub async fn until<K, T>(
    api: &Api<K>,
    selector: &Selector,
    mut inspect: impl FnMut(&BTreeMap<String, K>) -> Option<T>,
) -> kube::Result<T>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut failures = 0;
    loop {
        match list(api, selector).await {
            Ok((mut objects, version)) => {
                if let Some(value) = inspect(&objects) {
                    return Ok(value);
                }
                match watch(api, selector, &mut objects, version, &mut inspect).await {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => failures = 0,
                    Err(error) => retry_or_fail(&mut failures, error)?,
                }
            }
            Err(error) => retry_or_fail(&mut failures, error)?,
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Counts a failure. Returns the error if it is permanent, or if there were [`MAX_FAILURES`] failures in a row.
fn retry_or_fail(failures: &mut u32, error: kube::Error) -> kube::Result<()> {
    let is_permanent = match &error {
        // Temporary are: a timeout, an expired version of the objects, and too many requests.
        kube::Error::Api(status) => status.code < 500 && !matches!(status.code, 408 | 410 | 429),
        _ => false,
    };
    *failures += 1;
    if is_permanent || *failures >= MAX_FAILURES { Err(error) } else { Ok(()) }
}

/// Lists the objects, by name, and returns the version from which they can be watched.
async fn list<K>(api: &Api<K>, selector: &Selector) -> kube::Result<(BTreeMap<String, K>, String)>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = selector.list_params();
    let list = tokio::time::timeout(LIST_TIMEOUT, api.list(&params)).await;
    let list = list.unwrap_or_else(|_| Err(kube::Error::Service("the API server does not answer".into())))?;
    let version = list.metadata.resource_version.unwrap_or_default();
    Ok((list.items.into_iter().map(|object| (object.name_any(), object)).collect(), version))
}

/// Watches the objects from a version, and calls `inspect` after each change. Returns `None` if the watch ends before
/// `inspect` returns a value.
async fn watch<K, T>(
    api: &Api<K>,
    selector: &Selector,
    objects: &mut BTreeMap<String, K>,
    version: String,
    inspect: &mut impl FnMut(&BTreeMap<String, K>) -> Option<T>,
) -> kube::Result<Option<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut events = pin!(api.watch(&selector.watch_params(), &version).await?);
    while let Ok(Some(event)) = tokio::time::timeout(WATCH_TIMEOUT, events.next()).await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                objects.insert(object.name_any(), object);
            }
            WatchEvent::Deleted(object) => {
                objects.remove(&object.name_any());
            }
            WatchEvent::Bookmark(_) => continue,
            // In most cases the version is too old. The caller lists the objects again.
            WatchEvent::Error(_) => return Ok(None),
        }
        if let Some(value) = inspect(objects) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
