//! The lint of `tools[].sends`: arguments that the tool does not have, and declarations without effect.

use super::finding::Finding;
use super::known_tools::KnownTools;
use super::unmatched::unnamed_argument;
use crate::rules::tool_rules::naming_rules;
use bloomery_crds::v1alpha1::{EffectPolicy, SkillSpec, ToolDeclaration};

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let sending = spec.tools.iter().enumerate().filter(|(_, tool)| !tool.sends.is_empty());
    sending
        .flat_map(|(at, tool)| {
            let path = format!("spec.tools[{at}].sends");
            let mut findings = unknown_arguments(&path, tool, spec, known);
            findings.extend(without_effect(&path, tool, spec));
            findings
        })
        .collect()
}

fn unknown_arguments(path: &str, tool: &ToolDeclaration, spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let tools: Vec<_> = known.matching(&tool.name).collect();
    let finding = |(nth, name): (usize, &String)| {
        let path = format!("{path}[{nth}]");
        if tools.is_empty() || tools.iter().any(|(_, signature)| signature.may_have(name)) {
            return unnamed_argument(&path, name, &tools, spec, known);
        }
        let message = format!("{} has no argument {name:?}", tool.name);
        let finding = if known.is_complete() { Finding::error(path, message) } else { Finding::warning(path, message) };
        Some(finding.nearest(name, tools.iter().flat_map(|(_, signature)| signature.names())))
    };
    tool.sends.iter().enumerate().filter_map(finding).collect()
}

/// Warns of a declaration to which no default applies.
fn without_effect(path: &str, tool: &ToolDeclaration, spec: &SkillSpec) -> Option<Finding> {
    let effects = spec.policy.as_ref().and_then(|policy| policy.effects);
    let name = tool.name.as_str();
    if !matches!(effects, Some(EffectPolicy::RequireApproval | EffectPolicy::Deny)) {
        let message = format!("has no effect without spec.policy.effects: calls of {name} are allowed");
        return Some(Finding::warning(path, message).hint(
            "set effects to require_approval or deny, or write a rule with fromUser() in spec.policy.approvals",
        ));
    }
    // The tools of a prefix may have declarations of their own.
    let is_one = !name.ends_with('*');
    if is_one && spec.declaration_of(name).is_some_and(|declared| declared.read_only != Some(true)) {
        let message =
            format!("has no effect, because {name} is not readOnly: spec.policy.effects applies to every call");
        return Some(Finding::warning(path, message).hint("set readOnly: true, or remove sends"));
    }
    let rule = naming_rules(spec, name).next().filter(|_| is_one)?;
    let message = format!("has no effect, because {rule} names {name}: spec.policy.effects does not apply to it");
    Some(Finding::warning(path, message).hint(format!("write a rule with fromUser() about {}", tool.sends.join(", "))))
}
