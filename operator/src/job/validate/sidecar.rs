//! Resolves the sidecars of a worker pod: the MCP server of the Job, and the one that runs the scripts of the Skill.

use crate::job::plan::Wait;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::mcp_container::scripts;
use crate::mcp_container::sidecar::Sidecar;
use crate::settings::McpSettings;
use bloomery_crds::conditions::Reason;
use bloomery_crds::v1alpha1::{Binding, McpServer, SkillSpec};
use std::collections::BTreeMap;

/// Returns the sidecars, with the secrets that the Job binds for its MCP server. `revision` is the name of the revision with this spec.
///
/// The operator has accepted the revision. So a fault means that the installation allows less than before.
pub(super) fn resolve_sidecars(
    (spec, revision): (&SkillSpec, &str),
    bindings: &BTreeMap<String, Binding>,
    settings: &McpSettings,
) -> Result<Vec<Sidecar>, Wait> {
    let wait = |faults: Vec<String>| Wait::new(Reason::SkillNotReady, join_sentences(&faults, MAX_LIST_BYTES));
    let own = spec.pods.as_ref().and_then(|pods| pods.mcp.as_ref());
    let container = spec.mcp_server.as_ref().and_then(McpServer::sidecar);
    let server = container.map(|container| Sidecar::new(container, own, settings)).transpose().map_err(wait)?;
    let server = server.map(|server| server.with_secrets(bindings));
    let scripts = scripts::sidecar(spec, revision, settings).map_err(wait)?;
    Ok(server.into_iter().chain(scripts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::PodDefaults;
    use serde_json::json;

    fn resolved(server: &serde_json::Value, max: &str) -> Result<usize, Wait> {
        let settings = McpSettings {
            pod: PodDefaults::default(),
            resources: serde_json::from_value(json!({"limits": {"memory": "64Mi"}})).unwrap(),
            max_resources: serde_json::from_str(max).unwrap(),
        };
        let spec = json!({"problem": {"statement": "Help"}, "mcpServer": server});
        let spec = serde_json::from_value(spec).unwrap();
        resolve_sidecars((&spec, "a-1"), &BTreeMap::new(), &settings).map(|sidecars| sidecars.len())
    }

    #[test]
    fn only_a_server_of_the_scope_job_is_a_sidecar() {
        let container = json!({"image": "db:1", "resources": {"limits": {"memory": "2Gi"}}});
        assert_eq!(resolved(&json!({"container": container}), "{}"), Ok(0));
        assert_eq!(resolved(&json!(null), "{}"), Ok(0));
        let of_job = json!({"container": container, "scope": "Job"});
        assert_eq!(resolved(&of_job, "{}"), Ok(1));
        let wait = resolved(&of_job, r#"{"memory": "1Gi"}"#).unwrap_err();
        assert_eq!(wait.reason, Reason::SkillNotReady);
        assert!(wait.message.contains("spec.mcpServer.container.resources.limits.memory: is 2Gi"), "{}", wait.message);
    }
}
