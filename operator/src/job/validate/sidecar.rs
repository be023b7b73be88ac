//! Resolves the MCP server that a worker pod has as a sidecar.

use crate::job::plan::Wait;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::mcp_container::sidecar::Sidecar;
use crate::settings::McpSettings;
use bloomery_crds::conditions::Reason;
use bloomery_crds::v1alpha1::{Binding, McpServer, SkillSpec};
use std::collections::BTreeMap;

/// Returns the sidecar with the secrets that the Job binds for it; none if the Skill's server is no sidecar.
///
/// The operator has accepted the revision. So a fault means that the installation allows less than before.
pub(super) fn resolve_sidecar(
    spec: &SkillSpec,
    bindings: &BTreeMap<String, Binding>,
    settings: &McpSettings,
) -> Result<Option<Sidecar>, Wait> {
    let Some(container) = spec.mcp_server.as_ref().and_then(McpServer::sidecar) else { return Ok(None) };
    let own = spec.pods.as_ref().and_then(|pods| pods.mcp.as_ref());
    let sidecar = Sidecar::new(container, own, settings)
        .map_err(|faults| Wait::new(Reason::SkillNotReady, join_sentences(&faults, MAX_LIST_BYTES)))?;
    Ok(Some(sidecar.with_secrets(bindings)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::PodDefaults;
    use serde_json::json;

    fn resolved(server: &serde_json::Value, max: &str) -> Result<Option<Sidecar>, Wait> {
        let settings = McpSettings {
            pod: PodDefaults::default(),
            resources: serde_json::from_value(json!({"limits": {"memory": "64Mi"}})).unwrap(),
            max_resources: serde_json::from_str(max).unwrap(),
        };
        let spec = json!({"problem": {"statement": "Help"}, "mcpServer": server});
        resolve_sidecar(&serde_json::from_value(spec).unwrap(), &BTreeMap::new(), &settings)
    }

    #[test]
    fn only_a_server_of_the_scope_job_is_a_sidecar() {
        let container = json!({"image": "db:1", "resources": {"limits": {"memory": "2Gi"}}});
        assert_eq!(resolved(&json!({"container": container}), "{}"), Ok(None));
        assert_eq!(resolved(&json!(null), "{}"), Ok(None));
        let of_job = json!({"container": container, "scope": "Job"});
        assert!(resolved(&of_job, "{}").unwrap().is_some());
        let wait = resolved(&of_job, r#"{"memory": "1Gi"}"#).unwrap_err();
        assert_eq!(wait.reason, Reason::SkillNotReady);
        assert!(wait.message.contains("spec.mcpServer.container.resources.limits.memory: is 2Gi"), "{}", wait.message);
    }
}
