//! The lint of `tools[].sends`: arguments that the tool does not have, and declarations without effect.

use super::finding::Finding;
use super::known_tools::KnownTools;
use bloomery_crds::v1alpha1::{EffectPolicy, SkillSpec, ToolDeclaration};

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let sending = spec.tools.iter().enumerate().filter(|(_, tool)| !tool.sends.is_empty());
    sending
        .flat_map(|(at, tool)| {
            let path = format!("spec.tools[{at}].sends");
            let mut findings = unknown_arguments(&path, tool, known);
            findings.extend(without_effect(&path, tool, spec));
            findings
        })
        .collect()
}

fn unknown_arguments(path: &str, tool: &ToolDeclaration, known: &KnownTools) -> Vec<Finding> {
    let signatures: Vec<_> = known.matching(&tool.name).map(|(_, signature)| signature).collect();
    let is_unknown = |name: &str| !signatures.is_empty() && !signatures.iter().any(|known| known.may_have(name));
    let finding = |(nth, name): (usize, &String)| {
        let (path, message) = (format!("{path}[{nth}]"), format!("{} has no argument {name:?}", tool.name));
        let finding = if known.is_complete() { Finding::error(path, message) } else { Finding::warning(path, message) };
        finding.nearest(name, signatures.iter().flat_map(|signature| signature.names()))
    };
    tool.sends.iter().enumerate().filter(|(_, name)| is_unknown(name)).map(finding).collect()
}

fn without_effect(path: &str, tool: &ToolDeclaration, spec: &SkillSpec) -> Option<Finding> {
    let effects = spec.policy.as_ref().and_then(|policy| policy.effects);
    let has_default = matches!(effects, Some(EffectPolicy::RequireApproval | EffectPolicy::Deny));
    (!has_default).then(|| {
        let message = format!("has no effect without spec.policy.effects: calls of {} are allowed", tool.name);
        Finding::warning(path, message)
            .hint("set effects to require_approval or deny, or write a rule with fromUser() in spec.policy.approvals")
    })
}
