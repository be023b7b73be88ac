//! The lint of parts that reach nothing: tools without a server, and secrets that no tool gets.

use super::finding::Finding;
use crate::core_tools;
use bloomery_crds::resources::unused_secrets;
use bloomery_crds::tool_pattern;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_crds::{scripts, sidecar};

/// Returns the errors of the sidecars of worker pods: the MCP server of a Job, and the scripts.
pub(super) fn of_sidecars(spec: &SkillSpec) -> impl Iterator<Item = Finding> {
    let faults = sidecar::faults(spec).into_iter().chain(scripts::faults(spec));
    faults.map(|fault| Finding::error(fault.path, fault.message))
}

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let secrets = unused_secrets(spec)
        .map(|secret| Finding::warning(format!("spec.resources[{}]", secret.index), secret.reason).hint(secret.remedy));
    missing_server(spec).into_iter().chain(secrets).collect()
}

/// Warns if a Skill names tools that only an MCP server can have, but has none.
fn missing_server(spec: &SkillSpec) -> Option<Finding> {
    let tools = server_tools(spec);
    (spec.mcp_server.is_none() && !tools.is_empty()).then(|| {
        let message = format!("the Skill has no MCP server, so it runs without its tools: {}", tools.join(", "));
        Finding::warning("spec.mcpServer", message).hint(
            "declare a service, a container or a uri, or name a server to `bloomery run` with --mcp or --mcp-command",
        )
    })
}

/// Returns the tools that a Skill declares, allows or holds and that only an MCP server can have, without duplicates.
pub fn server_tools(spec: &SkillSpec) -> Vec<&str> {
    let declared = spec.tools.iter().map(|tool| tool.name.as_str());
    let policy = spec.policy.iter();
    let held = policy.clone().flat_map(|policy| &policy.approvals).map(|rule| rule.tool_id.as_str());
    let rules = policy.filter_map(|policy| policy.tools.as_ref()?.allowed.as_ref());
    let allowed = rules.flatten().map(String::as_str);
    let core = core_tools::names();
    let mut tools = Vec::new();
    let is_core = |pattern: &str| core.iter().any(|tool| tool_pattern::matches(pattern, tool));
    let is_of_server = |pattern: &&str| !is_core(pattern) && !scripts::may_match(spec, pattern);
    for name in declared.chain(held).chain(allowed).filter(is_of_server) {
        if !tools.contains(&name) {
            tools.push(name);
        }
    }
    tools
}
