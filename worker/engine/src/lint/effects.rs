//! Warns of rules that turn `policy.effects: deny` off for a tool, so that calls which they do not hold are allowed.

use super::finding::Finding;
use crate::rules::tool_rules::naming_rules;
use bloomery_crds::v1alpha1::{ApprovalAction, ApprovalRule, EffectPolicy, SkillSpec, ToolDeclaration, When};
use std::collections::BTreeSet;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    if spec.policy.as_ref().and_then(|policy| policy.effects) != Some(EffectPolicy::Deny) {
        return Vec::new();
    }
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).map(|rule| rule.tool_id.as_str());
    let declared = spec.tools.iter().map(|tool| tool.name.as_str());
    let names: BTreeSet<&str> = approvals.chain(declared).filter(|name| !name.ends_with('*')).collect();
    let opened = names.into_iter().filter(|name| !is_read_only(spec, name) && !decides_on_every_call(spec, name));
    let finding = |name: &str| {
        let rule = naming_rules(spec, name).next()?;
        let message =
            format!("names {name}, so effects: deny does not apply to it: a call that no rule holds is allowed");
        Some(Finding::warning(rule, message).hint(format!(
            "if this is meant, write policy: {{allowed: always}} for {name} in spec.tools; otherwise add a rule with action: deny"
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
