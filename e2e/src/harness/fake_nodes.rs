//! Fake nodes, which kwok simulates on this machine: pods on them need no resources, and succeed after a second
//! (`e2e/cluster/config/kwok.yaml`).

use std::fs::File;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Child, Command};

use bloomery_crds::names;
use bloomery_testkit::json::typed;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::cluster::Cluster;
use super::command;
use super::objects::write;
use super::tenant::Tenant;
use super::wait::until;

/// The annotation of the nodes that kwok manages.
const ANNOTATION: &str = "kwok.x-k8s.io/node";

/// The largest number of pods on a fake node.
const PODS_PER_NODE: usize = 1_000;

/// Runs `meanwhile` with this number of fake nodes, to which all new pods are scheduled. They are removed afterwards, also if `meanwhile`
/// fails.
pub async fn with_fake_nodes<T>(cluster: &Cluster, nodes: usize, meanwhile: impl AsyncFnOnce() -> T) -> T {
    let api = Api::<Node>::all(cluster.client.clone());
    let _kwok = Kwok::start();
    set_schedulable(&api, false).await;
    let names: Vec<String> = (0..nodes).map(|number| format!("fake-{number}")).collect();
    for name in &names {
        let room = json!({"cpu": "1k", "memory": "1Ti", "pods": PODS_PER_NODE.to_string()});
        let node: Node = typed(json!({
            "metadata": {"name": name, "annotations": {ANNOTATION: "fake"}, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": room, "capacity": room},
        }));
        api.create(&write(), &node).await.unwrap_or_else(|error| panic!("{name} cannot be created: {error}"));
        until(&api, name, "a fake node to be ready", is_ready).await;
    }
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    for name in &names {
        // The pods on the node are deleted by the pod garbage collector.
        let _ = api.delete(name, &DeleteParams::default()).await;
    }
    set_schedulable(&api, true).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Creates the memory of a tenant on a volume that any node can mount, so that pods of its Jobs can be scheduled to fake nodes.
pub async fn memory_for_fake_nodes(tenant: &Tenant) {
    let size = json!({"storage": "1Gi"});
    let volume = format!("fake-{}", tenant.namespace);
    let made: PersistentVolume = typed(json!({
        "metadata": {"name": volume},
        "spec": {
            "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "",
            "hostPath": {"path": "/var/empty"}, "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": tenant.namespace, "name": names::MEMORY_CLAIM},
        },
    }));
    Api::all(tenant.cluster.client.clone()).create(&write(), &made).await.expect("the volume is created");
    let claim: PersistentVolumeClaim = typed(json!({
        "metadata": {"name": names::MEMORY_CLAIM},
        "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume, "resources": {"requests": size},
        },
    }));
    tenant.create(claim).await;
}

/// The process that simulates the nodes. It ends when the value is dropped.
struct Kwok(Child);

impl Kwok {
    fn start() -> Self {
        let program = command::run(&mut command::script("e2e/cluster/cluster", &["kwok"]));
        let log = File::create(std::env::temp_dir().join("bloomery-kwok.log")).expect("the log of kwok is created");
        let mut kwok = Command::new(program);
        kwok.arg("--kubeconfig").arg(command::kubeconfig());
        kwok.arg("--config").arg(command::checkout("e2e/cluster/config/kwok.yaml"));
        kwok.arg(format!("--manage-nodes-with-annotation-selector={ANNOTATION}=fake"));
        kwok.args(["--manage-all-nodes=false", "--node-lease-duration-seconds=40"]);
        kwok.stdout(log.try_clone().expect("the log is open")).stderr(log);
        Self(kwok.spawn().expect("kwok starts"))
    }
}

impl Drop for Kwok {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sets whether pods are scheduled to the nodes that are not fake.
async fn set_schedulable(api: &Api<Node>, schedulable: bool) {
    let nodes = api.list(&ListParams::default()).await.expect("nodes can be listed");
    for node in nodes.iter().filter(|node| !node.annotations().contains_key(ANNOTATION)) {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": !schedulable}}));
        let written = api.patch(&node.name_any(), &PatchParams::default(), &patch).await;
        written.unwrap_or_else(|error| panic!("{} cannot be changed: {error}", node.name_any()));
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
