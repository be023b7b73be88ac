//! The operator under test.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::cluster::Cluster;
use super::objects::{PORT, is_ready};
use super::proxy;
use super::wait::{eventually, until};

/// The operator's namespace, as `hack/install` has it.
pub const NAMESPACE: &str = "bloomery-system";

/// The release, and the name of what the chart makes.
pub const RELEASE: &str = "bloomery";

/// The operator's program.
pub const PROGRAM: &str = "bloomery-operator";

const SELECTOR: &str = "app.kubernetes.io/instance=bloomery,app.kubernetes.io/component=operator";

/// Who may disturb the operator, or what the cluster has of it.
static TURN: RwLock<()> = RwLock::const_new(());

/// Waits for the right to disturb the operator: to restart it, or to change what checks decisions. Stories that do so take
/// turns.
pub async fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().await
}

/// Waits until nobody disturbs the operator, and keeps it so: for stories in which people decide.
pub async fn undisturbed() -> RwLockReadGuard<'static, ()> {
    TURN.read().await
}

/// Does something while there is no operator; it comes back, whatever became of that. For whoever is [`alone`].
pub async fn away<T>(cluster: &Cluster, meanwhile: impl AsyncFnOnce() -> T) -> T {
    let before = scaled(cluster, 0).await;
    eventually("the operator to go", async || {
        let left: Vec<String> = pods(cluster).await.iter().map(ResourceExt::name_any).collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    scaled(cluster, before).await;
    until_rolled_out(cluster).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Sets how many replicas there are; gives how many there were.
async fn scaled(cluster: &Cluster, replicas: i32) -> i32 {
    let api = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
    let there = api.get(RELEASE).await.unwrap_or_else(|error| panic!("the operator cannot be read: {error}"));
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let scaled = api.patch(RELEASE, &PatchParams::default(), &patch).await;
    scaled.unwrap_or_else(|error| panic!("the operator cannot be scaled: {error}"));
    there.spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The pods of the operator's namespace.
pub fn api(cluster: &Cluster) -> Api<Pod> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

/// The operator's pods.
pub async fn pods(cluster: &Cluster) -> Vec<Pod> {
    api(cluster).list(&ListParams::default().labels(SELECTOR)).await.map(|list| list.items).unwrap_or_default()
}

/// The operator's pod that is ready.
pub async fn ready_pod(cluster: &Cluster) -> Pod {
    eventually("a ready pod of the operator", async || {
        let pods = pods(cluster).await;
        let seen: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        let serves = |pod: &Pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
        pods.into_iter().find(serves).ok_or(seen)
    })
    .await
}

/// Waits until the operator is rolled out.
pub async fn until_rolled_out(cluster: &Cluster) {
    let api = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
    let rolled_out = |deployment: &Deployment| {
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        deployment.status.as_ref().is_some_and(|status| {
            status.observed_generation == deployment.metadata.generation
                && status.updated_replicas == wanted
                && status.available_replicas == wanted
                && status.replicas == wanted
        })
    };
    until(&api, RELEASE, "the operator to be rolled out", rolled_out).await;
}

/// What the operator answers on its HTTP port.
pub async fn says(cluster: &Cluster, path: &str) -> String {
    let service = proxy::Service::new(cluster.client.clone(), NAMESPACE, RELEASE, PORT);
    eventually("the operator to answer", async || service.text(path).await).await
}

/// The address of the operator's Service: reachable from the node of the local cluster.
pub async fn address(cluster: &Cluster) -> String {
    let service = Api::<Service>::namespaced(cluster.client.clone(), NAMESPACE).get(RELEASE).await;
    let service = service.unwrap_or_else(|error| panic!("the operator's Service cannot be read: {error}"));
    service.spec.and_then(|spec| spec.cluster_ip).expect("the operator's Service has an address")
}
