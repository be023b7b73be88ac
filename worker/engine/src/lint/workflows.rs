//! The lint of workflows: required workflows with a step that is always denied, or that any result closes, and orders that bind no
//! call.

use super::finding::Finding;
use super::known_tools::KnownTools;
use crate::rules::guardrail::{Rule, RuleEffect, reads_as_tool};
use crate::tool::ToolSource;
use crate::tool_policy::skill_refusal;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalAction, Policy, SkillSpec, StepExpectation, ToolDeclaration, When, Workflow};

pub(super) fn findings(spec: &SkillSpec, rules: &[(String, Rule)], known: &KnownTools) -> Vec<Finding> {
    let mut findings = denied_steps(spec, rules);
    findings.extend(open_steps(spec, known));
    findings.extend(spec.policy.iter().flat_map(without_effect));
    findings.extend(spec.policy.iter().flat_map(|policy| without_order(policy, known)));
    findings.extend(spec.policy.iter().flat_map(matched_earlier));
    findings.extend(spec.policy.iter().flat_map(any_evidence));
    findings
}

/// Warns of an order of tools that binds no call, unless its author says so with `required: false`.
fn without_order(policy: &Policy, known: &KnownTools) -> Vec<Finding> {
    let is_tool = |step: &String| known.matching(step).next().is_some();
    let optional = policy.workflows.iter().enumerate();
    let optional = optional.filter(|(_, workflow)| workflow.required.is_none() && workflow.expect.is_empty());
    let ordering = optional.filter(|(_, workflow)| workflow.steps.iter().skip(1).any(is_tool));
    let finding = |(at, workflow): (usize, &Workflow)| {
        let message =
            format!("the workflow {:?} is not required, so the order of its steps binds no call", workflow.name);
        Finding::warning(format!("spec.policy.workflows[{at}]"), message)
            .hint("set required: true, or required: false if the order is only advice")
    };
    ordering.map(finding).collect()
}

/// Warns of steps whose tool an earlier step matches too: a call of the tool counts for the earlier step.
fn matched_earlier(policy: &Policy) -> Vec<Finding> {
    let required = policy.workflows.iter().enumerate().filter(|(_, workflow)| workflow.required == Some(true));
    let steps = required.flat_map(|(at, workflow)| {
        workflow.steps.iter().enumerate().map(move |(nth, step)| (at, nth, step, workflow.steps.iter().take(nth)))
    });
    steps
        .filter_map(|(at, nth, step, mut before)| {
            let earlier =
                before.find(|earlier| earlier.ends_with('*') && *earlier != step && matches(earlier, step))?;
            let message =
                format!("the step {earlier:?} matches {step:?} too, so a call of {step} does not wait for that step");
            let finding = Finding::warning(format!("spec.policy.workflows[{at}].steps[{nth}]"), message);
            Some(finding.hint(format!("name the tools that must be called first in place of {earlier:?}")))
        })
        .collect()
}

/// Warns of requirements of a workflow that is not required: its steps bind no call.
fn without_effect(policy: &Policy) -> Vec<Finding> {
    let optional = policy.workflows.iter().enumerate();
    let optional = optional.filter(|(_, workflow)| workflow.required != Some(true) && !workflow.expect.is_empty());
    let finding = |(at, workflow): (usize, &Workflow)| {
        let message =
            format!("the workflow {:?} is not required, so no call is denied if its steps are not done", workflow.name);
        Finding::warning(format!("spec.policy.workflows[{at}].expect"), message).hint("set required: true")
    };
    optional.map(finding).collect()
}

/// Warns of steps that the result of every tool closes.
fn any_evidence(policy: &Policy) -> Vec<Finding> {
    let closes_all = |expected: &StepExpectation| expected.evidence.as_ref().is_some_and(|named| named.tool == "*");
    let expected = policy.expectations().filter(|(_, _, expected)| closes_all(expected));
    let finding = |(path, _, expected): (String, &Workflow, &StepExpectation)| {
        let message = format!("the result of every tool can close {:?}", expected.step);
        Finding::warning(format!("{path}.evidence.tool"), message)
            .hint("name the tool whose result shows that the step is done")
    };
    expected.map(finding).collect()
}

/// Finds evidence and approvers of steps that are tools: only a call of the tool completes such a step.
pub(super) fn closed_tools(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let is_tool = |step: &str| known.matching(step).next().is_some();
    let expected = spec.policy.iter().flat_map(Policy::expectations);
    let of_tools = expected.filter(|(_, _, expected)| is_tool(&expected.step));
    let finding = |(path, _, expected): (String, &Workflow, &StepExpectation)| {
        let step = &expected.step;
        if expected.evidence.is_some() {
            let message = format!("{step:?} is a tool, so only its own call completes the step");
            return Some(
                Finding::error(format!("{path}.evidence"), message).hint("leave evidence out, or write a condition"),
            );
        }
        expected.approver.as_ref()?;
        let message = format!("{step:?} is a tool, so nobody is asked before the step is closed");
        let finding = Finding::error(format!("{path}.approver"), message);
        Some(finding.hint("hold the call of the tool in spec.policy.approvals"))
    };
    of_tools.filter_map(finding).collect()
}

/// Warns of steps in words before a tool: the model closes them with any result, so they do not protect the tool.
fn open_steps(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let is_tool = |step: &str| known.matching(step).next().is_some();
    let workflows = spec.policy.iter().flat_map(|policy| &policy.workflows).enumerate();
    let required = workflows.filter(|(_, workflow)| workflow.required == Some(true));
    let mut findings = Vec::new();
    for (at, workflow) in required {
        let mut tool = None;
        for (nth, step) in workflow.steps.iter().enumerate().rev() {
            if is_tool(step) {
                tool = Some(step);
            } else if let Some(tool) =
                tool.filter(|_| !is_guarded(workflow, step) && (known.is_complete() || !reads_as_tool(step)))
            {
                let message =
                    format!("the model can close {step:?} with the result of any call: it does not protect {tool}");
                let finding = Finding::warning(format!("spec.policy.workflows[{at}].steps[{nth}]"), message);
                findings.push(finding.hint(
                    "name what closes the step in expect, such as evidence: {tool: ask_user} or approver: NAME, or name a tool as the step",
                ));
            }
        }
    }
    findings
}

/// Returns whether a workflow names what closes a step in words.
fn is_guarded(workflow: &Workflow, step: &str) -> bool {
    let mut of_step = workflow.expect.iter().filter(|expected| expected.step == step);
    of_step.any(|expected| expected.evidence.is_some() || expected.approver.is_some())
}

/// Finds required steps that are always denied.
fn denied_steps(spec: &SkillSpec, rules: &[(String, Rule)]) -> Vec<Finding> {
    let Some(policy) = &spec.policy else { return Vec::new() };
    let required = policy.workflows.iter().enumerate().filter(|(_, workflow)| workflow.required == Some(true));
    let steps = required.flat_map(|(at, workflow)| {
        let name = workflow.name.as_str();
        workflow.steps.iter().enumerate().map(move |(nth, step)| (at, nth, name, step))
    });
    steps
        .filter_map(|(at, nth, name, step)| {
            let reason = denial_reason(step, spec, policy, rules)?;
            let message = format!(
                "{step:?} and the steps after it can never be done, but the workflow {name:?} is required: {reason}"
            );
            let finding = Finding::error(format!("spec.policy.workflows[{at}].steps[{nth}]"), message);
            Some(finding.hint("allow the tool, or remove the step from the workflow"))
        })
        .collect()
}

/// Returns the reason why every call of a tool is denied, or nothing if calls can be allowed.
fn denial_reason(tool: &str, spec: &SkillSpec, policy: &Policy, rules: &[(String, Rule)]) -> Option<String> {
    // Any other step may be free text, or stand for several tools.
    let is_tool = |declared: &&ToolDeclaration| declared.name == tool || reads_as_tool(tool);
    spec.declaration_of(tool).filter(is_tool).filter(|_| !tool.ends_with('*'))?;
    let refusal = policy.tools.as_ref().and_then(|policy| skill_refusal(policy, ToolSource::Server, tool));
    if refusal.is_some() {
        return refusal;
    }
    let forbids =
        |declared: &ToolDeclaration| declared.policy.as_ref().and_then(|policy| policy.allowed) == Some(When::Never);
    if let Some(declared) = spec.declarations_of(tool).find(|declared| forbids(declared)) {
        return Some(format!("the policy of {} in spec.tools allows no call of it", declared.name));
    }
    let denies_tool = |effect: &RuleEffect| matches!(effect, RuleEffect::ToolDeny { tool: denied } if denied == tool);
    let denied = policy.approvals.iter().position(|rule| {
        rule.action == Some(ApprovalAction::Deny) && rule.when.is_none() && matches(&rule.tool_id, tool)
    });
    if let Some(at) = denied {
        return Some(format!("spec.policy.approvals[{at}] denies every call of it"));
    }
    let (path, rule) = rules.iter().find(|(_, rule)| rule.effects.iter().any(denies_tool))?;
    Some(format!("{path} denies every call of it: {:?}", rule.text))
}
