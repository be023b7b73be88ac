//! The operator under test.

use std::panic::{AssertUnwindSafe, resume_unwind};

use bloomery_testkit::json::typed;
use futures::FutureExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::command;
use super::objects::{PORT, is_ready};
use super::proxy;
use super::wait::{eventually, until};

/// The operator's namespace, the same as in `hack/install`.
pub const NAMESPACE: &str = "bloomery-system";

/// The name of the Helm release and of the objects of the chart.
pub const RELEASE: &str = "bloomery";

/// The name of the lease that the leader holds.
const LEASE: &str = "bloomery-leader";

/// The name of the operator's container.
pub const CONTAINER: &str = "operator";

/// The operator's program.
pub const PROGRAM: &str = "bloomery-operator";

/// The label of a second Deployment of the operator, which a story runs beside that of the release.
pub const LABEL_BESIDE: &str = "bloomery.dev/e2e-beside";

const SELECTOR: &str =
    "app.kubernetes.io/instance=bloomery,app.kubernetes.io/component=operator,!bloomery.dev/e2e-beside";

/// Runs `meanwhile` with this number of ready pods of the operator. The number before is restored afterwards, also if `meanwhile`
/// fails.
///
/// The caller must be a [`story_alone`](super::story_alone).
pub async fn with_replicas<T>(cluster: &Cluster, replicas: u16, meanwhile: impl AsyncFnOnce() -> T) -> T {
    let before = set_replicas(cluster, replicas.into()).await;
    eventually(&format!("{replicas} ready pods of the operator and no other"), async || {
        let pods = pods(cluster).await;
        let seen: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        if pods.len() == usize::from(replicas) && pods.iter().all(serves) { Ok(()) } else { Err(seen) }
    })
    .await;
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    set_replicas(cluster, before).await;
    until_rolled_out(cluster).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Runs `meanwhile` with this change of the operator's pod template, a strategic merge patch. The template before is restored afterwards,
/// also if `meanwhile` fails.
///
/// The caller must be a [`story_alone`](super::story_alone).
pub async fn with_template<T>(cluster: &Cluster, change: &Value, meanwhile: impl AsyncFnOnce() -> T) -> T {
    let operators = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
    let before = operators.get(RELEASE).await.expect("the operator exists").spec.expect("it has a spec").template;
    let change = Patch::Strategic(json!({"spec": {"template": change}}));
    operators.patch(RELEASE, &PatchParams::default(), &change).await.expect("the operator is changed");
    until_rolled_out(cluster).await;
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    let back: Patch<Value> = Patch::Json(typed(json!([{"op": "replace", "path": "/spec/template", "value": before}])));
    operators.patch(RELEASE, &PatchParams::default(), &back).await.expect("the operator is restored");
    until_rolled_out(cluster).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Runs `meanwhile` without the release of the operator. It is installed again afterwards, also if `meanwhile` fails.
///
/// The caller must be a [`story_alone`](super::story_alone).
pub async fn uninstalled<T>(cluster: &Cluster, meanwhile: impl AsyncFnOnce() -> T) -> T {
    command::run(&mut command::helm(&["uninstall", "--wait", "--namespace", NAMESPACE, RELEASE]));
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    command::run(&mut command::script("hack/install", &[]));
    until_rolled_out(cluster).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Sets the number of replicas, and returns the number before.
async fn set_replicas(cluster: &Cluster, replicas: i32) -> i32 {
    let api = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
    let there = api.get(RELEASE).await.unwrap_or_else(|error| panic!("the operator cannot be read: {error}"));
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let scaled = api.patch(RELEASE, &PatchParams::default(), &patch).await;
    scaled.unwrap_or_else(|error| panic!("the operator cannot be scaled: {error}"));
    there.spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Returns the pods of the operator's namespace.
pub fn api(cluster: &Cluster) -> Api<Pod> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

/// Returns the pods of the release's operator.
pub async fn pods(cluster: &Cluster) -> Vec<Pod> {
    api(cluster).list(&ListParams::default().labels(SELECTOR)).await.map(|list| list.items).unwrap_or_default()
}

/// Waits for a ready pod of the operator, and returns it.
pub async fn ready_pod(cluster: &Cluster) -> Pod {
    eventually("a ready pod of the operator", async || {
        let pods = pods(cluster).await;
        let seen: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        pods.into_iter().find(serves).ok_or(seen)
    })
    .await
}

fn serves(pod: &Pod) -> bool {
    is_ready(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Waits until the holder of the lease is a pod that exists, and returns the pod.
pub async fn leader(cluster: &Cluster) -> Pod {
    leader_other_than(cluster, None).await
}

/// Waits until the holder of the lease is a pod that exists and is not this one, and returns the pod.
pub async fn leader_after(cluster: &Cluster, former: &Pod) -> Pod {
    leader_other_than(cluster, Some(former.name_any())).await
}

async fn leader_other_than(cluster: &Cluster, former: Option<String>) -> Pod {
    let leases = Api::<Lease>::namespaced(cluster.client.clone(), NAMESPACE);
    eventually("a pod of the operator that leads", async || {
        let lease = leases.get(LEASE).await.map_err(|error| error.to_string())?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).ok_or("nobody holds the lease")?;
        if former.as_ref() == Some(&holder) {
            return Err(format!("{holder} still holds the lease"));
        }
        let leader = api(cluster).get_opt(&holder).await.map_err(|error| error.to_string())?;
        leader.ok_or_else(|| format!("{holder} holds the lease, and is gone"))
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

/// Returns the response of the operator's HTTP port to a GET request.
pub async fn get(cluster: &Cluster, path: &str) -> String {
    let service = proxy::Service::new(cluster.client.clone(), NAMESPACE, RELEASE, PORT);
    eventually("the operator to answer", async || service.text(path).await).await
}

/// Returns the address of the operator's Service, which is reachable from the node of the local cluster.
pub async fn address(cluster: &Cluster) -> String {
    let service = Api::<Service>::namespaced(cluster.client.clone(), NAMESPACE).get(RELEASE).await;
    let service = service.unwrap_or_else(|error| panic!("the operator's Service cannot be read: {error}"));
    service.spec.and_then(|spec| spec.cluster_ip).expect("the operator's Service has an address")
}
