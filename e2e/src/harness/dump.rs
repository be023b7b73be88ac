//! Prints the state of a tenant after a failed story.

use std::fmt::Debug;

use bloomery_crds::v1alpha1::{Job, Model, Skill};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tenant::Tenant;
use super::{operator, wait};

/// The number of lines that are printed from the end of a pod's log.
const LOG_TAIL_LINES: i64 = 60;

/// Prints the objects, events and logs of a tenant.
pub(super) async fn print(tenant: &Tenant) {
    let namespace = &tenant.namespace;
    eprintln!("\n=== the story failed; the objects of {namespace}:");
    objects::<Skill>(tenant).await;
    objects::<Job>(tenant).await;
    objects::<Model>(tenant).await;
    objects::<PersistentVolumeClaim>(tenant).await;
    events(tenant).await;
    pods(tenant).await;
    operator_log(tenant).await;
    eprintln!(
        "=== {namespace} is not deleted. Inspect it with: $(make -s kubectl) --kubeconfig $(make -s kubeconfig) -n {namespace} get all,sj\n\
         === Delete it with: $(make -s kubectl) --kubeconfig $(make -s kubeconfig) delete namespace {namespace}"
    );
}

async fn objects<K>(tenant: &Tenant)
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    K::DynamicType: Default,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    match tenant.api::<K>().list(&ListParams::default()).await {
        Ok(list) => list.items.iter().for_each(|object| {
            eprintln!("--- {kind} {}\n{}", object.name_any(), wait::text(object));
        }),
        Err(error) => eprintln!("--- {kind}: {error}"),
    }
}

async fn events(tenant: &Tenant) {
    eprintln!("--- events");
    for event in tenant.api::<Event>().list(&ListParams::default()).await.into_iter().flatten() {
        let about = event.involved_object;
        eprintln!(
            "{} {}: {} {}",
            about.kind.unwrap_or_default(),
            about.name.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        );
    }
}

async fn pods(tenant: &Tenant) {
    let api = tenant.api::<Pod>();
    for pod in api.list(&ListParams::default()).await.into_iter().flatten() {
        let name = pod.name_any();
        let status = pod.status.unwrap_or_default();
        let containers = serde_yaml::to_string(&status.container_statuses).unwrap_or_default();
        eprintln!("--- pod {name}: {}\n{containers}", status.phase.unwrap_or_default());
        print_log(&name, api.logs(&name, &tail()).await);
    }
}

async fn operator_log(tenant: &Tenant) {
    for pod in operator::pods(&tenant.cluster).await {
        let name = pod.name_any();
        let log = operator::api(&tenant.cluster)
            .logs(&name, &LogParams { tail_lines: Some(2_000), ..LogParams::default() })
            .await;
        let own =
            |log: String| log.lines().filter(|line| line.contains(&tenant.namespace)).collect::<Vec<_>>().join("\n");
        print_log(&format!("operator {name}, lines with the tenant's name"), log.map(own));
    }
}

fn print_log(of: &str, log: kube::Result<String>) {
    match log {
        Ok(log) => eprintln!("--- log of {of}\n{log}"),
        Err(error) => eprintln!("--- log of {of}: {error}"),
    }
}

fn tail() -> LogParams {
    LogParams { tail_lines: Some(LOG_TAIL_LINES), ..LogParams::default() }
}
