//! The loop that all controllers share: it reconciles the objects that were woken. Concurrency is bounded, each object
//! is reconciled at most once at a time, and failures are retried with backoff.

use crate::caches::{Change, Guarded};
use crate::context::Context;
use crate::error::Error;
use crate::events::EventMessage;
use bloomery_crds::conditions::Reason;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::core::{Resource, ResourceExt};
use kube::runtime::controller::{Action, Config, Error as RunError, applier};
use kube::runtime::reflector::{ObjectRef, Store};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// A reference to an object that has to be reconciled.
pub type Wake<K> = ObjectRef<Guarded<K>>;

/// The objects to reconcile, and the streams that wake them.
pub struct Controller<K: Resource<DynamicType = ()> + Clone + 'static> {
    /// The name for logs and metrics.
    pub name: &'static str,
    /// The cached objects to reconcile.
    pub store: Store<Guarded<K>>,
    /// The streams of objects to reconcile ([`wake_on`]).
    pub wakes: Vec<BoxStream<'static, Wake<K>>>,
    /// The maximum number of concurrent reconciles.
    pub concurrency: u16,
}

impl<K> Controller<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Send + Sync + 'static,
{
    /// Reconciles every object once the caches are filled, and then whenever it is woken, until the shutdown.
    ///
    /// Reconciles in progress are finished. Dropping the future aborts them, which is safe: every write is idempotent
    /// and guarded by a version or a UID.
    pub async fn run<F, Fut>(self, context: Arc<Context>, reconcile: F, shutdown: CancellationToken)
    where
        F: Fn(K, Arc<Context>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, Error>> + Send + 'static,
    {
        let Self { name, store, wakes, concurrency } = self;
        tokio::select! {
            () = context.caches.wait_until_synced() => {}
            () = shutdown.cancelled() => return,
        }
        let all_objects = stream::iter(references_to_all(&store)).boxed();
        // The queue ends only at the shutdown, even if every wake stream ends.
        let queue = stream::select_all(wakes.into_iter().chain([all_objects, stream::pending().boxed()]))
            .take_until(shutdown.cancelled_owned())
            .map(Ok::<_, Infallible>);
        let retries = Arc::new(Retries::default());
        let reconcile = Arc::new(reconcile);
        let reconcile_one = {
            let retries = retries.clone();
            move |object: Arc<Guarded<K>>, context: Arc<Context>| {
                Box::pin(reconcile_object(name, object, context, reconcile.clone(), retries.clone()))
            }
        };
        let retry_policy =
            move |object: Arc<Guarded<K>>, error: &Error, _: Arc<Context>| retries.next_action(&object, error);
        let config = Config::default().concurrency(concurrency);
        let mut results =
            std::pin::pin!(applier(reconcile_one, retry_policy, context, store, queue, config).into_stream());
        while let Some(result) = results.next().await {
            if let Err(error @ (RunError::QueueError(_) | RunError::RunnerError(_))) = result {
                tracing::error!(controller = name, %error, "the controller itself failed");
            }
        }
    }
}

/// Returns the stream of objects to reconcile. For each changed object it has those that `find` returns; for
/// [`Change::Anything`], all objects of `store`.
pub fn wake_on<C, K>(
    changes: BoxStream<'static, Change<C>>,
    store: &Store<Guarded<K>>,
    find: impl Fn(&C) -> Vec<Wake<K>> + Send + 'static,
) -> BoxStream<'static, Wake<K>>
where
    C: Send + Sync + 'static,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Send + Sync + 'static,
{
    let store = store.clone();
    changes
        .flat_map(move |change| match change {
            Change::Touched(object) => stream::iter(find(&object)).left_stream(),
            Change::Anything => stream::iter(references_to_all(&store)).right_stream(),
        })
        .boxed()
}

/// Returns the object that a label names, in the namespace of the labelled object.
pub fn named_by_label<C, K>(object: &C, label: &str) -> Vec<Wake<K>>
where
    C: Resource,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + 'static,
{
    let Some(namespace) = &object.meta().namespace else { return Vec::new() };
    let name = object.labels().get(label);
    name.map(|name| ObjectRef::new(name).within(namespace)).into_iter().collect()
}

/// Returns a reference to each object. Each is created when it is taken, and has no version and no UID: after a start, the queue refers to
/// every object.
fn references_to_all<K>(store: &Store<Guarded<K>>) -> impl Iterator<Item = Wake<K>> + use<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + 'static,
{
    let reference =
        |object: Arc<Guarded<K>>| ObjectRef::new(&object.name_any()).within(&object.namespace().unwrap_or_default());
    store.state().into_iter().map(reference)
}

async fn reconcile_object<K, F, Fut>(
    name: &'static str,
    object: Arc<Guarded<K>>,
    context: Arc<Context>,
    reconcile: Arc<F>,
    retries: Arc<Retries>,
) -> Result<Action, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Send + Sync + 'static,
    F: Fn(K, Arc<Context>) -> Fut,
    Fut: Future<Output = Result<Action, Error>>,
{
    let resource = match &object.0 {
        Ok(resource) => resource.clone(),
        Err(invalid) => {
            let note = format!(
                "{} {} cannot be read by this version of the operator and is ignored: {}. Apply it again in the form of the installed CRD, or upgrade the operator if the object is of a newer version.",
                K::kind(&()),
                object.name_any(),
                invalid.error
            );
            tracing::warn!(controller = name, namespace = object.namespace(), note);
            context.events.publish(object.as_ref(), EventMessage::warning(Reason::Invalid, note)).await;
            return Ok(Action::await_change());
        }
    };
    // The cache does not show the last written status yet. Once it does, the change wakes the object.
    if context.statuses.is_stale(&resource) {
        return Ok(Action::await_change());
    }
    let started = Instant::now();
    let _running = context.metrics.record_reconcile_start(name);
    let result = reconcile(resource, context.clone()).await;
    let result_label = result.as_ref().map_or_else(Error::kind, |_| "ok");
    context.metrics.record_reconcile_end(name, result_label, started.elapsed().as_secs_f64());
    match &result {
        Ok(_) => retries.forget(object.as_ref()),
        Err(error) if error.is_conflict() || error.is_gone() => {
            tracing::debug!(controller = name, namespace = object.namespace(), object = object.name_any(), %error);
        }
        Err(error) => {
            tracing::warn!(controller = name, namespace = object.namespace(), object = object.name_any(), %error);
        }
    }
    result
}

/// The number of consecutive failures of each object.
#[derive(Default)]
struct Retries(Mutex<HashMap<String, u32>>);

impl Retries {
    fn next_action<K: Resource>(&self, object: &Guarded<K>, error: &Error) -> Action {
        if error.is_gone() {
            self.forget(object);
            return Action::await_change();
        }
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = failures.entry(object.uid().unwrap_or_default()).or_default();
        *failures = failures.saturating_add(1);
        Action::requeue(error.retry_delay(*failures))
    }

    fn forget<K: Resource>(&self, object: &Guarded<K>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&object.uid().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests;
