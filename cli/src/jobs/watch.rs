//! Watches objects until something is so. Nothing is polled: the API server says what changes.

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

/// For how long one watch is asked for, in seconds. The API server ends it then, and it is asked for again.
const WATCH_SECONDS: u32 = 240;

/// How long a watch may be silent: longer than it was asked for, it is dead.
const WATCH_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// How often in a row it may go wrong.
const MAX_FAILURES: u32 = 5;

/// How long is waited before it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Which objects are watched.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Option<String>,
    fields: Option<String>,
}

impl Selector {
    /// That of a name.
    pub(super) fn name(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), ..Self::default() }
    }

    /// Those with a label.
    pub(super) fn label(label: &str, value: &str) -> Self {
        Self { labels: Some(format!("{label}={value}")), ..Self::default() }
    }

    /// How they are listed.
    pub(super) fn list(&self) -> ListParams {
        let Self { labels, fields } = self;
        ListParams { label_selector: labels.clone(), field_selector: fields.clone(), ..ListParams::default() }
    }

    fn watch(&self) -> WatchParams {
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

/// Shows `see` the objects, by name, whenever one has changed, until it has what it looks for.
///
/// # Errors
/// What the API server refuses; or that it cannot be reached, again and again.
pub(super) async fn until<K, T>(
    api: &Api<K>,
    selector: &Selector,
    mut inspect: impl FnMut(&BTreeMap<String, K>) -> Option<T>,
) -> kube::Result<T>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut failures = 0;
    loop {
        match listed(api, selector).await {
            Ok((mut objects, version)) => {
                if let Some(found) = inspect(&objects) {
                    return Ok(found);
                }
                match watch(api, selector, &mut objects, version, &mut inspect).await {
                    Ok(Some(found)) => return Ok(found),
                    Ok(None) => failures = 0,
                    Err(error) => retry_or_fail(&mut failures, error)?,
                }
            }
            Err(error) => retry_or_fail(&mut failures, error)?,
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Whether a fault may pass.
fn retry_or_fail(failures: &mut u32, error: kube::Error) -> kube::Result<()> {
    let is_final = match &error {
        kube::Error::Api(status) => status.code < 500 && !matches!(status.code, 408 | 410 | 429),
        _ => false,
    };
    *failures += 1;
    if is_final || *failures >= MAX_FAILURES { Err(error) } else { Ok(()) }
}

async fn listed<K>(api: &Api<K>, selector: &Selector) -> kube::Result<(BTreeMap<String, K>, String)>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = selector.list();
    let list = tokio::time::timeout(LIST_TIMEOUT, api.list(&params)).await;
    let list = list.unwrap_or_else(|_| Err(kube::Error::Service("the API server does not answer".into())))?;
    let version = list.metadata.resource_version.unwrap_or_default();
    Ok((list.items.into_iter().map(|object| (object.name_any(), object)).collect(), version))
}

/// Watches on from a version; none where the watch has ended before anything was found.
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
    let mut events = pin!(api.watch(&selector.watch(), &version).await?);
    while let Ok(Some(event)) = tokio::time::timeout(WATCH_TIMEOUT, events.next()).await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                objects.insert(object.name_any(), object);
            }
            WatchEvent::Deleted(object) => {
                objects.remove(&object.name_any());
            }
            WatchEvent::Bookmark(_) => continue,
            // The version is too old, most often: they are listed anew.
            WatchEvent::Error(_) => return Ok(None),
        }
        if let Some(found) = inspect(objects) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
