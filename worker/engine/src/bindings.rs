//! The bindings of a Job, as its tools see them (`docs/explanation/engine.md`, section 4). A tool has no resources of its own: it
//! uses those that the Job binds.

use bloomery_crds::run::{BoundResource, ResourceSource};
use serde_json::{Value, json};

/// Returns the bindings that every tool of the Job may see, in the order of the Skill: the mount paths of file systems and the
/// URLs of endpoints. Secrets and their names are left out.
pub fn for_tools(resources: &[BoundResource]) -> Vec<Value> {
    let rendered = |resource: &BoundResource| {
        let (name, kind) = (&resource.name, resource.kind);
        match &resource.source {
            ResourceSource::Value(url) if !kind.is_secret() => Some(json!({"name": name, "type": kind, "url": url})),
            ResourceSource::Mount { path, read_only } => {
                Some(json!({"name": name, "type": kind, "path": path, "readOnly": read_only}))
            }
            ResourceSource::Value(_) | ResourceSource::Secret(_) | ResourceSource::ForServer { .. } => None,
        }
    };
    resources.iter().filter_map(rendered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::run::KeyFile;
    use bloomery_crds::v1alpha1::ResourceType;

    fn bound(name: &str, kind: ResourceType, source: ResourceSource) -> BoundResource {
        BoundResource { name: name.into(), kind, source }
    }

    #[test]
    fn tools_see_paths_and_urls_and_no_secrets() {
        let file = KeyFile { path: "/etc/bloomery/secrets/ci/token".into(), secret: "ci".into(), key: "token".into() };
        let mount = ResourceSource::Mount { path: "/resources/codebase".into(), read_only: true };
        let url = || ResourceSource::Value("https://docs.example".into());
        let resources = [
            bound("codebase", ResourceType::Filesystem, mount),
            bound("docs", ResourceType::ApiEndpoint, url()),
            bound("token", ResourceType::Credential, ResourceSource::Secret(file)),
            bound("orders", ResourceType::ConnectionString, url()),
        ];
        let expected = [
            json!({"name": "codebase", "type": "filesystem", "path": "/resources/codebase", "readOnly": true}),
            json!({"name": "docs", "type": "api_endpoint", "url": "https://docs.example"}),
        ];
        assert_eq!(for_tools(&resources), expected);
    }
}
