//! Rights in a namespace, and the reviews of the rights that a user has.

use bloomery_crds::names::GROUP;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};

/// A right in a namespace: a verb on one object of a resource, or on all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The API group of the resource; empty for the core group.
    pub group: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The resource, with its subresource: `pods/log`.
    pub resource: &'static str,
    /// The name of the object; `None` for all objects.
    pub name: Option<String>,
}

impl Right {
    /// Returns a right on all Jobs.
    pub fn on_jobs(verb: &'static str) -> Self {
        Self { group: GROUP, verb, resource: "skilljobs", name: None }
    }

    /// Returns a right on all pods, or on a subresource of them.
    pub fn on_pods(verb: &'static str, resource: &'static str) -> Self {
        Self { group: "", verb, resource, name: None }
    }

    /// Describes the right, such as `the verb get on pods`.
    pub fn description(&self) -> String {
        let Self { group, verb, resource, name } = self;
        let dot = if group.is_empty() { "" } else { "." };
        let name = name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("the verb {verb} on {resource}{dot}{group}{name}")
    }

    /// Describes several rights: `the verb get on pods, and the verb list on pods`.
    pub fn descriptions(rights: &[Self]) -> String {
        rights.iter().map(Self::description).collect::<Vec<_>>().join(", and ")
    }

    /// Returns the rule of a role that grants the right.
    pub(super) fn rule(&self) -> String {
        let Self { group, verb, resource, .. } = self;
        let group = if group.is_empty() { "\"\"" } else { group };
        format!("- {{apiGroups: [{group}], resources: [{resource}], verbs: [{verb}]}}")
    }
}

/// Returns the rights that the user of a client lacks in a namespace, or in all namespaces for `None`.
///
/// # Errors
/// If the API server does not answer.
pub(super) async fn missing_rights(
    client: &Client,
    namespace: Option<&str>,
    rights: Vec<Right>,
) -> kube::Result<Vec<Right>> {
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let mut missing = Vec::new();
    for right in rights {
        let (resource, subresource) = match right.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (right.resource, None),
        };
        let attributes = ResourceAttributes {
            group: Some(right.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource,
            verb: Some(right.verb.to_owned()),
            name: right.name.clone(),
            namespace: namespace.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let review = api.create(&PostParams::default(), &review).await?;
        if !review.status.is_some_and(|status| status.allowed) {
            missing.push(right);
        }
    }
    Ok(missing)
}
