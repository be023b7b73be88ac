//! The lint of workflows: required workflows with a step that is always denied.

use super::finding::Finding;
use crate::rules::guardrail::{Rule, RuleEffect};
use crate::tool_policy::server_tool_refusal;
use bloomery_crds::v1alpha1::{Policy, SkillSpec, ToolDeclaration, When};

pub(super) fn findings(spec: &SkillSpec, rules: &[(String, Rule)]) -> Vec<Finding> {
    let Some(policy) = &spec.policy else { return Vec::new() };
    let required = policy.workflows.iter().enumerate().filter(|(_, workflow)| workflow.required == Some(true));
    let steps = required.flat_map(|(at, workflow)| {
        let name = workflow.name.as_str();
        workflow.steps.iter().enumerate().map(move |(nth, step)| (at, nth, name, step))
    });
    steps
        .filter_map(|(at, nth, name, step)| {
            let tool = spec.tools.iter().find(|tool| tool.name == *step)?;
            let reason = denial_reason(tool, policy, rules)?;
            let message = format!(
                "{step:?} and the steps after it can never be done, but the workflow {name:?} is required: {reason}"
            );
            let finding = Finding::error(format!("spec.policy.workflows[{at}].steps[{nth}]"), message);
            Some(finding.hint("allow the tool, or remove the step from the workflow"))
        })
        .collect()
}

/// Returns the reason why every call of a tool is denied, or nothing if calls can be allowed.
fn denial_reason(tool: &ToolDeclaration, policy: &Policy, rules: &[(String, Rule)]) -> Option<String> {
    if let Some(refusal) = server_tool_refusal(policy.tools.as_ref(), &tool.name) {
        return Some(refusal);
    }
    if tool.policy.as_ref().and_then(|policy| policy.allowed) == Some(When::Never) {
        return Some(format!("the policy of {} in spec.tools allows no call of it", tool.name));
    }
    let denies_tool =
        |effect: &RuleEffect| matches!(effect, RuleEffect::ToolDeny { tool: denied } if *denied == tool.name);
    let (path, rule) = rules.iter().find(|(_, rule)| rule.effects.iter().any(denies_tool))?;
    Some(format!("{path} denies every call of it: {:?}", rule.text))
}
