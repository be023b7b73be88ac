//! The target of a request path.

use axum::http::Method;

/// An object, a collection of objects, or a subresource of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The path of the API group and version: `/api/v1`, `/apis/bloomery.dev/v1alpha1`.
    base: String,
    /// `None` for cluster-scoped objects, and for the collection of all namespaces.
    pub namespace: Option<String>,
    /// The plural name of the resource.
    pub plural: String,
    /// `None` for a collection.
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Target {
    /// Parses a path. Returns `None` if it names no resource.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let base_parts = if parts.first() == Some(&"api") { 2 } else { 3 };
        let (base, rest) = parts.split_at_checked(base_parts)?;
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return None,
        };
        let owned = |text: &&str| (*text).to_owned();
        Some(Self {
            base: format!("/{}", base.join("/")),
            namespace,
            plural: owned(plural),
            name: name.map(owned),
            subresource: subresource.map(owned),
        })
    }

    /// Returns the API group; the core group is empty.
    pub fn group(&self) -> &str {
        let mut parts = self.base.split('/').skip(2);
        let group = parts.next().unwrap_or_default();
        if parts.next().is_some() { group } else { "" }
    }

    /// Returns the path of the object with this name in the collection that the target names.
    pub fn object(&self, name: &str) -> String {
        let namespace = self.namespace.as_ref().map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
        format!("{}{namespace}/{}/{name}", self.base, self.plural)
    }

    /// Returns whether the object at a path belongs to the collection that the target names.
    pub fn contains(&self, path: &str) -> bool {
        Self::parse(path).is_some_and(|object| {
            object.name.is_some()
                && object.subresource.is_none()
                && (object.base.as_str(), object.plural.as_str()) == (self.base.as_str(), self.plural.as_str())
                && (self.namespace.is_none() || self.namespace == object.namespace)
        })
    }

    /// Returns the verb of a request for access rules.
    pub fn verb(&self, method: &Method, watches: bool) -> &'static str {
        match *method {
            Method::GET if watches => "watch",
            Method::GET if self.name.is_none() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "delete",
        }
    }

    /// Returns the resource for access rules: `pods`, `pods/log`.
    pub fn resource(&self) -> String {
        let subresource = self.subresource.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{}{subresource}", self.plural)
    }

    /// Formats the target as API servers do in error messages: `approvals.bloomery.dev`, `pods "worker"`.
    pub fn display_name(&self) -> String {
        let group = if self.group().is_empty() { String::new() } else { format!(".{}", self.group()) };
        let name = self.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        format!("{}{group}{name}", self.plural)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::subresource("/api/v1/namespaces/acme/pods/worker/log", "", "pods/log", "pods \"worker\"")]
    #[case::collection("/apis/bloomery.dev/v1alpha1/skilljobs", "bloomery.dev", "skilljobs", "skilljobs.bloomery.dev")]
    #[case::namespace("/api/v1/namespaces/acme", "", "namespaces", "namespaces \"acme\"")]
    fn a_path_names_a_resource(#[case] path: &str, #[case] group: &str, #[case] resource: &str, #[case] named: &str) {
        let target = Target::parse(path).unwrap();
        assert_eq!(
            (target.group(), target.resource().as_str(), target.display_name().as_str()),
            (group, resource, named)
        );
    }

    #[test]
    fn a_collection_contains_the_objects_of_its_namespace() {
        let pods = Target::parse("/api/v1/namespaces/acme/pods").unwrap();
        assert!(pods.contains(&pods.object("worker")));
        assert!(!pods.contains("/api/v1/namespaces/other/pods/worker"));
        assert!(!pods.contains("/api/v1/namespaces/acme/services/worker"));
        assert!(Target::parse("/api/v1/pods").unwrap().contains("/api/v1/namespaces/other/pods/worker"));
    }
}
