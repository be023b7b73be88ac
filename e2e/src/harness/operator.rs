//! The operator under test.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tokio::sync::{Mutex, MutexGuard};

use super::cluster::Cluster;
use super::pods::{PORT, is_ready};
use super::proxy;
use super::wait::{eventually, until};

/// The operator's namespace, as `hack/install` has it.
pub const NAMESPACE: &str = "bloomery-system";

/// The release, and the name of what the chart makes.
pub const RELEASE: &str = "bloomery";

/// The operator's program.
pub const PROGRAM: &str = "bloomery-operator";

const SELECTOR: &str = "app.kubernetes.io/instance=bloomery,app.kubernetes.io/component=operator";

/// Waits for the right to restart the operator, so that stories which do so take turns.
pub async fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
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
