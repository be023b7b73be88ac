//! Pods with the servers of the harness. They conform to the `restricted` Pod Security Standard.

use bloomery_testkit::json::typed;
use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, SecurityContext, Service, Volume, VolumeMount};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::json;

use super::cluster::image;
use super::objects::{PORT, is_ready};
use super::tenant::Tenant;
use super::wait::{gone, until};

/// A server for a story: one pod, and a Service of the same name.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) image: &'static str,
    pub(super) env: Vec<(&'static str, String)>,
    /// Volumes, each with the directory that it is mounted at.
    pub(super) volumes: Vec<(Volume, &'static str)>,
}

impl Tenant {
    /// Starts a server and waits until it is ready.
    pub(super) async fn serve(&self, server: Server) {
        let name = server.name;
        self.create(service(name)).await;
        self.create(server.pod()).await;
        until(&self.api::<Pod>(), name, "a server of the harness to be ready", is_ready).await;
    }

    /// Deletes the pod of a server and creates it again, so that the server reads its Secrets again and loses its state.
    pub(super) async fn recreate_server(&self, name: &str) {
        let pods = self.api::<Pod>();
        let there = pods.get(name).await.unwrap_or_else(|error| panic!("{name} cannot be read: {error}"));
        self.remove::<Pod>(name).await;
        gone(&pods, name, there.uid().as_deref()).await;
        let mut spec = there.spec.expect("a pod has a spec");
        spec.node_name = None;
        let labels = there.metadata.labels;
        self.create(Pod {
            metadata: ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() },
            spec: Some(spec),
            status: None,
        })
        .await;
        until(&pods, name, "a server of the harness to be ready again", is_ready).await;
    }
}

impl Server {
    fn pod(self) -> Pod {
        let Self { name, image: built_as, env, volumes } = self;
        let mounts = volumes.iter().map(|(volume, at)| VolumeMount {
            name: volume.name.clone(),
            mount_path: (*at).to_owned(),
            ..VolumeMount::default()
        });
        let container = Container {
            name: name.to_owned(),
            image: Some(image(built_as)),
            env: Some(
                env.into_iter()
                    .map(|(name, value)| EnvVar { name: name.to_owned(), value: Some(value), value_from: None })
                    .collect(),
            ),
            volume_mounts: Some(mounts.collect()),
            security_context: Some(restricted()),
            readiness_probe: Some(typed(json!({"httpGet": {"path": "/healthz", "port": PORT}, "periodSeconds": 1}))),
            ..Container::default()
        };
        let volumes: Vec<Volume> = volumes.into_iter().map(|(volume, _)| volume).collect();
        typed(json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "containers": [container],
                "volumes": volumes,
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 1,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}
                },
            },
        }))
    }
}

fn service(name: &str) -> Service {
    typed(json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT}]},
    }))
}

/// Returns the security context that `restricted` requires.
fn restricted() -> SecurityContext {
    typed(json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}
    }))
}
