//! The watched state of the cluster: one cache for each kind, shared by all controllers. It has one watch, or one in each namespace that
//! the operator serves.
//!
//! Every replica keeps the caches, so that a new leader starts at once and any replica can check a report. The caches
//! stay small: where possible, they hold only objects that the operator manages, and no fields that it never reads.

mod cache;
mod guarded;
mod index;
mod raw;
mod trim;
mod watches;

pub use cache::{Cache, CacheOptions, Change, Feed, Watched};
pub use guarded::Guarded;
pub use raw::{AdmissionBinding, AdmissionPolicy, RawObject};

use crate::health::Liveness;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Approval, Job, Model, Skill};
use futures::stream::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::core::{PartialObjectMeta, ResourceExt};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use std::collections::BTreeMap;
use watches::Watches;

/// The duration of a watch in seconds. The API server ends the watch, and the next one continues at the same version.
pub const WATCH_SECONDS: u32 = 60;

/// The number of objects in a page of the initial list. The operator holds a page as text and as objects before it trims them.
const PAGE_SIZE: u32 = 100;

/// One cache for each kind.
pub struct Caches {
    /// All Skills.
    pub skills: Cache<Guarded<Skill>>,
    /// All Jobs (`skilljobs`), indexed by the name of the Job that they continue, or by the [`child_key`] of their parent. Of those that
    /// have ended, only what can still matter.
    pub jobs: Cache<Guarded<Job>>,
    /// All Models.
    pub models: Cache<Guarded<Model>>,
    /// All Approvals, without the description of the call; indexed by the UID of their Job.
    pub approvals: Cache<Guarded<Approval>>,
    /// The admission policies of Bloomery's charts, as stored.
    pub policies: Cache<AdmissionPolicy>,
    /// The bindings of those policies.
    pub bindings: Cache<AdmissionBinding>,
    /// Revisions of Skills, metadata only: they are immutable, and their names depend on their content.
    pub revisions: Cache<PartialObjectMeta<ConfigMap>>,
    /// The names and versions of all other `ConfigMap`s. A Skill may name one for a list; its data is read when the Skill is compiled.
    pub config_maps: Cache<PartialObjectMeta<ConfigMap>>,
    /// The `ServiceAccount`s that the operator manages.
    pub service_accounts: Cache<ServiceAccount>,
    /// The Deployments that the operator manages.
    pub deployments: Cache<Deployment>,
    /// The `PodDisruptionBudget`s that the operator manages. An update is not announced if it changes only the status.
    pub budgets: Cache<PodDisruptionBudget>,
    /// The network policies that the operator manages.
    pub network_policies: Cache<NetworkPolicy>,
    /// All Services. Of those that the operator does not manage, only the name, type, ports and selector, and whether it is headless.
    pub services: Cache<Service>,
    /// All `EndpointSlices`: of each, the Service and one ready endpoint. An update is announced only if it changes whether there
    /// is one.
    pub endpoint_slices: Cache<EndpointSlice>,
    /// All claims. The memory claim of each tenant in full; of the others, only the name, a pending deletion and the
    /// access modes.
    pub claims: Cache<PersistentVolumeClaim>,
    /// The pods that the operator manages, workers, probes and MCP servers, without their environment, volumes, scheduling and
    /// Job's part.
    pub pods: Cache<Pod>,
    /// All namespaces: the name, and the annotations for the suspension, the maximum of running Jobs and the other limits. An update of a
    /// namespace is announced only if it changes one of them.
    pub namespaces: Cache<PartialObjectMeta<Namespace>>,
}

impl Caches {
    /// Creates the caches of these namespaces, or of all if there are none, and the stream that feeds them. `liveness` receives the
    /// progress of each watch.
    pub fn new(client: &Client, namespaces: &[String], liveness: &Liveness) -> (Self, Feed) {
        let all = || watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE_SIZE);
        let managed = || all().labels(&format!("{}={}", names::LABEL_MANAGED_BY, names::MANAGER));
        let revisions = managed().labels(&format!(
            "{}={},{}=revision",
            names::LABEL_MANAGED_BY,
            names::MANAGER,
            names::LABEL_COMPONENT
        ));
        let of_others = all().labels(&format!("{}!={}", names::LABEL_MANAGED_BY, names::MANAGER));
        // The chart labels its objects so. The operator finds its own policies by their names.
        let of_charts = || all().labels("app.kubernetes.io/part-of=bloomery");
        let mut watches = Watches { client, namespaces, liveness, feeds: Vec::new() };
        let caches = Self {
            skills: watches.of_tenants(all(), CacheOptions::trimmed(trim::metadata)),
            jobs: watches.of_tenants(all(), CacheOptions::trimmed(trim::job).indexed_by(earlier_job)),
            models: watches.of_tenants(all(), CacheOptions::trimmed(trim::metadata)),
            approvals: watches.of_tenants(all(), CacheOptions::trimmed(trim::approval).indexed_by(job_uid)),
            policies: watches.of_cluster(of_charts(), CacheOptions::trimmed(trim::metadata)),
            bindings: watches.of_cluster(of_charts(), CacheOptions::trimmed(trim::metadata)),
            revisions: watches.of_tenants(revisions, CacheOptions::trimmed(trim::metadata)),
            config_maps: watches.of_tenants(of_others, CacheOptions::trimmed(trim::config_map)),
            service_accounts: watches.of_tenants(managed(), CacheOptions::trimmed(trim::metadata)),
            deployments: watches.of_tenants(managed(), CacheOptions::trimmed(trim::metadata)),
            budgets: watches.of_tenants(managed(), CacheOptions::trimmed(trim::budget).announcing(budget_changed)),
            network_policies: watches.of_tenants(managed(), CacheOptions::trimmed(trim::metadata)),
            services: watches.of_tenants(all(), CacheOptions::trimmed(trim::service)),
            endpoint_slices: watches
                .of_tenants(all(), CacheOptions::trimmed(trim::endpoint_slice).announcing(readiness_changed)),
            claims: watches.of_tenants(all(), CacheOptions::trimmed(trim::claim)),
            pods: watches.of_tenants(managed(), CacheOptions::trimmed(trim::pod)),
            namespaces: watches
                .of_namespaces(&all(), CacheOptions::trimmed(trim::namespace).announcing(annotations_changed)),
        };
        (caches, futures::stream::select_all(watches.feeds).boxed())
    }

    /// Waits until every cache has been filled once.
    pub async fn wait_until_synced(&self) {
        let Self {
            skills,
            jobs,
            models,
            approvals,
            policies,
            bindings,
            revisions,
            config_maps,
            service_accounts,
            deployments,
            budgets,
            network_policies,
            services,
            endpoint_slices,
            claims,
            pods,
            namespaces,
        } = self;
        tokio::join!(
            approvals.wait_until_synced(),
            policies.wait_until_synced(),
            bindings.wait_until_synced(),
            skills.wait_until_synced(),
            jobs.wait_until_synced(),
            models.wait_until_synced(),
            revisions.wait_until_synced(),
            config_maps.wait_until_synced(),
            service_accounts.wait_until_synced(),
            deployments.wait_until_synced(),
            budgets.wait_until_synced(),
            network_policies.wait_until_synced(),
            services.wait_until_synced(),
            endpoint_slices.wait_until_synced(),
            claims.wait_until_synced(),
            pods.wait_until_synced(),
            namespaces.wait_until_synced(),
        );
    }

    /// Returns whether a Service has a ready endpoint.
    pub fn has_endpoint(&self, namespace: &str, service: &str) -> bool {
        let slices = self.endpoint_slices.select(namespace, |slice| service_of(slice) == Some(service));
        slices.iter().any(|slice| has_ready_endpoint(slice))
    }

    /// Returns whether a namespace is suspended ([`names::ANNOTATION_SUSPEND`]): no pod of a Job may run in it.
    pub fn is_suspended(&self, namespace: &str) -> bool {
        let known = self.namespaces.store().get(&ObjectRef::new(namespace));
        known.is_some_and(|known| is_suspended(&known))
    }

    /// Returns whether a namespace is being deleted.
    pub fn is_terminating(&self, namespace: &str) -> bool {
        let known = self.namespaces.store().get(&ObjectRef::new(namespace));
        known.is_some_and(|known| is_terminating(&known))
    }

    /// The annotations of a namespace that the cache keeps.
    pub fn annotations(&self, namespace: &str) -> BTreeMap<String, String> {
        let known = self.namespaces.store().get(&ObjectRef::new(namespace));
        known.map(|known| known.annotations().clone()).unwrap_or_default()
    }

    /// The annotation of a namespace with its maximum of running Jobs ([`names::ANNOTATION_MAX_RUNNING_JOBS`]).
    pub fn max_running_jobs(&self, namespace: &str) -> Option<String> {
        let known = self.namespaces.store().get(&ObjectRef::new(namespace))?;
        max_running_jobs(&known).cloned()
    }
}

/// Returns whether a namespace is being deleted, as far as the cache shows it. Its deletion is not announced.
fn is_terminating(namespace: &PartialObjectMeta<Namespace>) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

/// Returns whether a namespace is suspended ([`names::ANNOTATION_SUSPEND`]).
pub fn is_suspended(namespace: &PartialObjectMeta<Namespace>) -> bool {
    namespace.annotations().get(names::ANNOTATION_SUSPEND).is_some_and(|suspended| suspended == "true")
}

fn max_running_jobs(namespace: &PartialObjectMeta<Namespace>) -> Option<&String> {
    namespace.annotations().get(names::ANNOTATION_MAX_RUNNING_JOBS)
}

/// The annotations of a namespace that limit its Skills and their Jobs.
fn tenant_annotations(namespace: &PartialObjectMeta<Namespace>) -> impl Iterator<Item = Option<&String>> {
    names::TENANT_ANNOTATIONS.into_iter().map(move |name| namespace.annotations().get(name))
}

/// Returns whether the suspension, the maximum of running Jobs or another limit of a namespace changed.
fn annotations_changed(before: &PartialObjectMeta<Namespace>, after: &PartialObjectMeta<Namespace>) -> bool {
    is_suspended(before) != is_suspended(after)
        || max_running_jobs(before) != max_running_jobs(after)
        || !tenant_annotations(before).eq(tenant_annotations(after))
}

/// The Service of an `EndpointSlice`.
pub fn service_of(slice: &EndpointSlice) -> Option<&str> {
    slice.labels().get(trim::LABEL_SERVICE).map(String::as_str)
}

/// Returns whether a trimmed `EndpointSlice` has a ready endpoint.
fn has_ready_endpoint(slice: &EndpointSlice) -> bool {
    !slice.endpoints.is_empty()
}

/// Returns whether an `EndpointSlice` got its first ready endpoint, or lost its last one.
fn readiness_changed(before: &EndpointSlice, after: &EndpointSlice) -> bool {
    has_ready_endpoint(before) != has_ready_endpoint(after)
}

/// Returns whether more than the status of a budget changed.
fn budget_changed(before: &PodDisruptionBudget, after: &PodDisruptionBudget) -> bool {
    let (old, new) = (&before.metadata, &after.metadata);
    (&old.labels, &old.annotations, &before.spec) != (&new.labels, &new.annotations, &after.spec)
}

/// The UID of the Job of an Approval.
fn job_uid(approval: &Guarded<Approval>) -> Option<String> {
    approval.0.as_ref().ok().map(|approval| approval.spec.job_uid.clone())
}

/// The name of the Job that a Job continues, or the [`child_key`] of its parent. A child continues no Job.
fn earlier_job(job: &Guarded<Job>) -> Option<String> {
    let spec = &job.0.as_ref().ok()?.spec;
    spec.continues.clone().or_else(|| spec.parent.as_ref().map(|parent| child_key(&parent.name)))
}

/// The key in the index of Jobs of the children of a Job. No Job has this name.
pub fn child_key(parent: &str) -> String {
    format!("{parent}/children")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::api::FakeApi;
    use rstest::rstest;
    use serde_json::json;

    fn annotated(suspend: Option<&str>) -> PartialObjectMeta<Namespace> {
        let mut namespace = PartialObjectMeta::<Namespace>::default();
        namespace.metadata.annotations =
            suspend.map(|value| [(names::ANNOTATION_SUSPEND.to_owned(), value.to_owned())].into());
        namespace
    }

    #[rstest]
    #[case::never_suspended(None, None, false)]
    #[case::suspended(None, Some("true"), true)]
    #[case::resumed(Some("true"), None, true)]
    #[case::set_to_false(Some("true"), Some("false"), true)]
    #[case::still_suspended(Some("true"), Some("true"), false)]
    #[case::set_to_an_unknown_value(None, Some("yes"), false)]
    fn only_a_changed_suspension_of_a_namespace_is_announced(
        #[case] before: Option<&str>,
        #[case] after: Option<&str>,
        #[case] is_announced: bool,
    ) {
        assert_eq!(annotations_changed(&annotated(before), &annotated(after)), is_announced);
    }

    #[test]
    fn a_changed_limit_of_a_namespace_is_announced() {
        for name in names::TENANT_ANNOTATIONS {
            let limited = |value: &str| {
                let mut namespace = annotated(None);
                namespace.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
                namespace
            };
            assert!(annotations_changed(&limited("1"), &limited("2")), "{name}");
            assert!(annotations_changed(&annotated(None), &limited("1")), "{name}");
            assert!(!annotations_changed(&limited("1"), &limited("1")), "{name}");
        }
    }

    #[rstest]
    #[case::all_namespaces(&[], &["acme", "beta", "gamma"])]
    #[case::a_list(&["--namespaces=acme,gamma"], &["acme", "gamma"])]
    #[case::one(&["--namespaces=beta"], &["beta"])]
    #[case::one_that_does_not_exist(&["--namespaces=delta"], &[])]
    #[tokio::test]
    async fn the_caches_hold_the_objects_of_the_served_namespaces(#[case] flags: &[&str], #[case] served: &[&str]) {
        let api = FakeApi::default();
        for namespace in ["acme", "beta", "gamma"] {
            let metadata = json!({"name": namespace, "uid": namespace});
            api.put(&format!("/api/v1/namespaces/{namespace}"), json!({"metadata": metadata}));
            let labels = json!({names::LABEL_MANAGED_BY: names::MANAGER});
            let metadata = json!({"name": "orders-worker", "namespace": namespace, "uid": namespace, "labels": labels});
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/orders-worker");
            api.put(&path, json!({"metadata": metadata}));
        }
        let context = api.operator_with(flags).await;
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let accounts = context.caches.service_accounts.store().state();
        assert_eq!(sorted(accounts.iter().filter_map(|account| account.namespace()).collect()), served);
        let namespaces = context.caches.namespaces.store().state();
        assert_eq!(sorted(namespaces.iter().map(|namespace| namespace.name_any()).collect()), served);
    }
}
