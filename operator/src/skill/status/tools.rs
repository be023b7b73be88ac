//! Describes the verification of the MCP server: whether a probe has listed its tools, whether the rules fit them, and whether they are
//! those that are pinned.

use super::super::probe::ProbeState;
use super::finding::Finding;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::probe::{rules_digest, server_digest};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FoundTools, Skill, VerifiedTools};

/// The conditions that this module computes.
const VERIFIED: ConditionType = ConditionType::McpVerified;
const PINNED: ConditionType = ConditionType::ToolsPinned;

/// The message before the first report of a probe.
const NOT_VERIFIED: &str =
    "the tools of the MCP server are not verified yet: a probe lists them once the server is available";

/// Describes the verification. A Skill without an MCP server has none of these conditions.
pub(super) fn findings(skill: &Skill, state: &ProbeState) -> Vec<Finding> {
    let Some(server) = skill.spec.mcp_server.as_ref().filter(|_| *state != ProbeState::NoServer) else {
        return Vec::new();
    };
    let tools = skill.status.as_ref().and_then(|status| status.tools.as_ref());
    let tools = tools.filter(|tools| tools.server == server_digest(server));
    vec![verified(skill, tools, state), pinned(tools, server.tools_digest.as_ref().map(bloomery_crds::Digest::as_str))]
}

fn verified(skill: &Skill, tools: Option<&VerifiedTools>, state: &ProbeState) -> Finding {
    // A new image of the server is verified while Jobs run.
    let current = tools.map(|tools| &tools.found).filter(|found| found.rules == rules_digest(&skill.spec));
    match (state, current) {
        (ProbeState::Failed(why), _) => failed(&format!("the tools of the MCP server cannot be verified: {why}")),
        (ProbeState::Repeated, _) => match last_failure(skill) {
            Some(message) => failed(message),
            None => current.map_or_else(not_verified, rules_finding),
        },
        (_, Some(found)) => rules_finding(found),
        (_, None) => not_verified(),
    }
}

fn not_verified() -> Finding {
    Finding::waits(VERIFIED, Reason::Verifying, NOT_VERIFIED)
}

fn failed(message: &str) -> Finding {
    Finding::stalls(VERIFIED, Reason::ProbeFailed, bounded(message, MAX_LIST_BYTES))
}

/// Returns the message of the failure that the status shows.
fn last_failure(skill: &Skill) -> Option<&str> {
    let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let shown = conditions::find(conditions, VERIFIED)?;
    (shown.reason == Reason::ProbeFailed.to_string()).then_some(shown.message.as_str())
}

fn rules_finding(found: &FoundTools) -> Finding {
    let FoundTools { count, rule_errors, more_rule_errors, .. } = found;
    if rule_errors.is_empty() {
        let tools = if *count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
        let message = format!("the MCP server lists {tools}, and the rules of the Skill fit them");
        return Finding::healthy(VERIFIED, Reason::Verified, message);
    }
    let message = join_sentences(&sentences(rule_errors, *more_rule_errors), MAX_LIST_BYTES);
    Finding::stalls(VERIFIED, Reason::RulesInvalid, message)
}

fn pinned(tools: Option<&VerifiedTools>, accepted: Option<&str>) -> Finding {
    let Some(tools) = tools else { return Finding::waits(PINNED, Reason::Verifying, NOT_VERIFIED) };
    let VerifiedTools { digest, found, .. } = tools;
    let Some(digest) = digest else {
        let message = format!(
            "the MCP server offers tools with the digest {}, and spec.mcpServer.toolsDigest accepts {}: set it to that digest if you accept the tools",
            found.digest,
            accepted.unwrap_or("others"),
        );
        return Finding::stalls(PINNED, Reason::ToolsChanged, message);
    };
    if found.changes.is_empty() {
        return Finding::healthy(PINNED, Reason::Pinned, format!("the tools are pinned with the digest {digest}"));
    }
    let remedy =
        format!("Jobs are denied these tools. To accept them, set spec.mcpServer.toolsDigest to {}.", found.digest);
    let changes = join_sentences(&sentences(&found.changes, found.more_changes), MAX_LIST_BYTES - remedy.len() - 1);
    Finding::stalls(PINNED, Reason::ToolsChanged, format!("{changes} {remedy}"))
}

/// Returns clauses as sentences, and the number of those that are not listed.
fn sentences(clauses: &[String], more: u32) -> Vec<String> {
    let more = (more > 0).then(|| format!("And {more} more."));
    clauses.iter().map(|clause| format!("{}.", clause.trim_end_matches('.'))).chain(more).collect()
}
