//! Warns of rules that turn `policy.effects` off for a tool, so that calls which they do not hold are allowed.

use super::finding::Finding;
use crate::condition::{Condition, Written, written};
use crate::rules::tool_rules::naming_rules;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalAction, ApprovalRule, EffectPolicy, SkillSpec, ToolDeclaration, When};
use std::collections::BTreeSet;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let effects = match spec.policy.as_ref().and_then(|policy| policy.effects) {
        Some(EffectPolicy::Deny) => "deny",
        Some(EffectPolicy::RequireApproval) => "require_approval",
        Some(EffectPolicy::Allow) | None => return Vec::new(),
    };
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).map(|rule| rule.tool_id.as_str());
    let declared = spec.tools.iter().map(|tool| tool.name.as_str());
    let names: BTreeSet<&str> = approvals.chain(declared).filter(|name| !name.ends_with('*')).collect();
    let opened = names.into_iter().filter(|name| !is_read_only(spec, name) && !decides_on_every_call(spec, name));
    // Where people are asked, a rule that names what may pass is the usual way to allow these calls.
    let opened = opened.filter(|name| effects == "deny" || !names_what_passes(spec, name));
    let finding = |name: &str| {
        let rule = naming_rules(spec, name).next()?;
        let message =
            format!("names {name}, so effects: {effects} does not apply to it: a call that no rule holds is allowed");
        let otherwise = if effects == "deny" { "a rule with action: deny" } else { "a rule with fromUser()" };
        Some(Finding::warning(rule, message).hint(format!(
            "if this is meant, write policy: {{allowed: always}} for {name} in spec.tools; otherwise add {otherwise}"
        )))
    };
    opened.filter_map(finding).collect()
}

fn is_read_only(spec: &SkillSpec, tool: &str) -> bool {
    spec.declaration_of(tool).is_some_and(|declared| declared.read_only == Some(true))
}

/// Returns whether the author has decided which calls of a tool are allowed, or a rule holds or denies every call.
fn decides_on_every_call(spec: &SkillSpec, tool: &str) -> bool {
    let is_explicit = |declared: &ToolDeclaration| {
        declared
            .policy
            .as_ref()
            .is_some_and(|policy| policy.allowed.is_some() || policy.requires_approval == Some(When::Always))
    };
    let is_complete = |rule: &ApprovalRule| {
        rule.tool_id == tool && (rule.when.is_none() || rule.action == Some(ApprovalAction::Deny))
    };
    spec.declarations_of(tool).any(is_explicit)
        || spec.policy.iter().flat_map(|policy| &policy.approvals).any(is_complete)
}

/// Returns whether a condition about a tool names what may pass.
fn names_what_passes(spec: &SkillSpec, tool: &str) -> bool {
    let mut of_tool = written(spec).into_iter().filter(|written| matches(written.tool, tool));
    let names = |written: Written<'_>| {
        let condition = Condition::compile_as(written.text, written.dialect);
        condition.is_ok_and(|condition| condition.names_what_passes(written.allows))
    };
    of_tool.any(names)
}
