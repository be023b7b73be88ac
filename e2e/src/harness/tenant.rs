//! The namespace of a story.

use std::fmt::Debug;

use bloomery_crds::names;
use bloomery_crds::v1alpha1::Job;
use bloomery_testkit::json::typed;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::objects::write;
use super::wait;

/// A namespace of a story.
pub struct Tenant {
    /// The cluster that it is in.
    pub cluster: Cluster,
    /// The namespace's name.
    pub namespace: String,
    uid: String,
}

impl Tenant {
    /// Creates a namespace that enforces the `restricted` Pod Security Standard.
    pub async fn open(cluster: Cluster) -> Self {
        let namespace: Namespace = typed(json!({
            "metadata": {
                "generateName": format!("e2e-{}-", title()),
                "labels": {"pod-security.kubernetes.io/enforce": "restricted", "bloomery.dev/e2e": "story"},
            },
        }));
        let made = Api::<Namespace>::all(cluster.client.clone()).create(&write(), &namespace).await;
        let made = made.unwrap_or_else(|error| panic!("a namespace cannot be created: {error}"));
        let (namespace, uid) = (made.name_any(), made.uid().unwrap_or_default());
        Self { cluster, namespace, uid }
    }

    /// Returns the tenant as a user in these groups.
    pub async fn seen_by(&self, user: &str, groups: &[&str]) -> Self {
        let cluster = Cluster { client: self.cluster.impersonating(user, groups).await };
        Self { cluster, namespace: self.namespace.clone(), uid: self.uid.clone() }
    }

    /// Returns the objects of a kind in the tenant.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.cluster.client.clone(), &self.namespace)
    }

    /// Creates an object.
    pub async fn create<K>(&self, object: K) -> K
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
        K::DynamicType: Default,
    {
        let made = self.api::<K>().create(&write(), &object).await;
        made.unwrap_or_else(|error| panic!("{} cannot be created: {error}\n{}", object.name_any(), wait::text(&object)))
    }

    /// Deletes an object and does not wait for its removal.
    pub async fn remove<K>(&self, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("{name} cannot be deleted: {error}"));
    }

    /// Suspends or resumes the namespace.
    pub async fn suspend(&self, suspended: bool) {
        self.annotate(&json!({names::ANNOTATION_SUSPEND: suspended.then_some("true")})).await;
    }

    /// Lets the namespace have pods of every Pod Security Standard, so that only other policies refuse some.
    pub async fn enforce_no_pod_security(&self) {
        self.patch_metadata(&json!({"labels": {"pod-security.kubernetes.io/enforce": null}})).await;
    }

    /// Sets annotations of the namespace, and removes those that are null.
    pub async fn annotate(&self, annotations: &Value) {
        self.patch_metadata(&json!({"annotations": annotations})).await;
    }

    async fn patch_metadata(&self, metadata: &Value) {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let namespaces = Api::<Namespace>::all(self.cluster.client.clone());
        let written = namespaces.patch(&self.namespace, &PatchParams::default(), &patch).await;
        written.unwrap_or_else(|error| panic!("{} cannot be changed: {error}", self.namespace));
    }

    /// Cancels all Jobs, as far as possible, and does not wait for their ends.
    pub async fn cancel_jobs(&self) {
        let jobs = self.api::<Job>();
        for job in jobs.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default() {
            let cancelled = Patch::Merge(json!({"spec": {"cancel": true}}));
            let _ = jobs.patch(&job.name_any(), &PatchParams::default(), &cancelled).await;
        }
    }

    /// Deletes the namespace and does not wait for its removal.
    pub async fn delete(&self) {
        let own = Preconditions { uid: Some(self.uid.clone()), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(own), ..DeleteParams::default() };
        match Api::<Namespace>::all(self.cluster.client.clone()).delete(&self.namespace, &parameters).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => panic!("{} cannot be deleted: {error}", self.namespace),
            Ok(_) => {}
        }
    }

    /// Waits until the namespace is gone.
    pub async fn gone(&self) {
        wait::gone(&Api::<Namespace>::all(self.cluster.client.clone()), &self.namespace, Some(&self.uid)).await;
    }
}

/// Returns the name of the story in characters that a namespace's name may have.
fn title() -> String {
    let thread = std::thread::current();
    let story = thread.name().and_then(|name| name.rsplit("::").next()).unwrap_or("story");
    let title: String =
        story.replace('_', "-").chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    title.trim_matches('-').to_owned()
}
