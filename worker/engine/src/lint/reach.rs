//! The lint of parts that reach nothing: tools without a server, and secrets that no tool gets.

use super::finding::Finding;
use bloomery_crds::resources::unused_secrets;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_crds::{core_tools, scripts, sidecar};

/// Returns the errors of the sidecars of worker pods: the MCP server of a Job, and the scripts.
pub(super) fn of_sidecars(spec: &SkillSpec) -> impl Iterator<Item = Finding> {
    sidecar::faults(spec).into_iter().chain(scripts::faults(spec)).map(Finding::from)
}

/// Warns of secrets that no tool gets.
pub(super) fn unused(spec: &SkillSpec) -> impl Iterator<Item = Finding> {
    unused_secrets(spec)
        .map(|secret| Finding::warning(format!("spec.resources[{}]", secret.index), secret.reason).hint(secret.remedy))
}

/// Returns the errors of names that are probably typing errors, in a Skill without an MCP server.
pub(super) fn misspelt(spec: &SkillSpec) -> impl Iterator<Item = Finding> {
    core_tools::misspelt(spec).into_iter().map(Finding::from)
}

/// Warns if a Skill names tools that only an MCP server can have, but has none.
pub(super) fn missing_server(spec: &SkillSpec) -> Option<Finding> {
    let tools = core_tools::server_tools(spec);
    (spec.mcp_server.is_none() && !tools.is_empty()).then(|| {
        let message = format!("the Skill has no MCP server, so it runs without its tools: {}", tools.join(", "));
        Finding::warning("spec.mcpServer", message).hint(
            "declare a service, a container or a uri, or name a server to `bloomery run` with --mcp or --mcp-command",
        )
    })
}
