//! What the caches leave out: who managed which field, and what nobody here reads.

use bloomery_crds::names;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;

/// What `kubectl apply` writes: the whole object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Drops the bookkeeping of the API server and of kubectl.
pub(super) fn metadata<K: Resource>(object: &mut K) {
    bookkeeping(object.meta_mut());
}

/// Keeps of a Service that is not ours only its name, type and ports.
pub(super) fn service(service: &mut Service) {
    bookkeeping(&mut service.metadata);
    service.status = None;
    if is_ours(&service.metadata) {
        return;
    }
    service.metadata = ObjectMeta {
        name: service.metadata.name.take(),
        namespace: service.metadata.namespace.take(),
        uid: service.metadata.uid.take(),
        ..ObjectMeta::default()
    };
    service.spec =
        service.spec.take().map(|spec| ServiceSpec { type_: spec.type_, ports: spec.ports, ..ServiceSpec::default() });
}

/// Drops what a running pod never tells us: its environment, its volumes, its Job's part.
pub(super) fn pod(pod: &mut Pod) {
    bookkeeping(&mut pod.metadata);
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.remove(names::ANNOTATION_JOB_PART);
    }
    let Some(spec) = &mut pod.spec else { return };
    spec.volumes = None;
    spec.affinity = None;
    spec.tolerations = None;
    for container in &mut spec.containers {
        container.env = None;
        container.env_from = None;
        container.volume_mounts = None;
    }
}

fn bookkeeping(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(names::LABEL_MANAGED_BY)).is_some_and(|manager| manager == names::MANAGER)
}
