//! The conditions of a Skill as written.

use bloomery_cel::Dialect;
use bloomery_crds::v1alpha1::{Policy, SkillSpec, When};

/// A condition as written in a Skill.
pub struct Written<'a> {
    /// The path of the field.
    pub path: String,
    /// The condition.
    pub text: &'a str,
    /// The tool, or the tools, about whose calls it decides.
    pub tool: &'a str,
    /// The kind of the condition.
    pub dialect: Dialect,
    /// Whether the rule allows the calls for which the condition is true. Otherwise, it holds or denies them.
    pub allows: bool,
    /// Whether the tool closes a step in words. Otherwise, a step has the name of its tool.
    pub is_evidence: bool,
    /// The steps that are before the condition's step in its workflow.
    pub earlier_steps: &'a [String],
}

/// Returns all conditions of a Skill.
pub fn written(spec: &SkillSpec) -> Vec<Written<'_>> {
    let of_tools = spec.tools.iter().enumerate().filter_map(|(at, tool)| {
        let policy = tool.policy.as_ref()?;
        let path = format!("spec.tools[{at}].policy.condition");
        let allows = policy.allowed == Some(When::Conditional);
        Some(of_call(path, policy.condition.as_deref()?, &tool.name, allows))
    });
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).enumerate();
    let of_approvals = approvals.filter_map(|(at, rule)| {
        let path = format!("spec.policy.approvals[{at}].when");
        Some(of_call(path, rule.when.as_deref()?, &rule.tool_id, false))
    });
    of_tools.chain(of_approvals).chain(of_workflows(spec)).collect()
}

fn of_call<'a>(path: String, text: &'a str, tool: &'a str, allows: bool) -> Written<'a> {
    Written { path, text, tool, dialect: Dialect::Call, allows, is_evidence: false, earlier_steps: &[] }
}

fn of_workflows(spec: &SkillSpec) -> impl Iterator<Item = Written<'_>> {
    spec.policy.iter().flat_map(Policy::expectations).filter_map(|(path, workflow, expected)| {
        let step = workflow.steps.iter().position(|step| *step == expected.step).unwrap_or_default();
        // A step in words has no calls of its own, so the condition is about the calls that close it.
        let mut of_step = workflow.expect.iter().filter(|other| other.step == expected.step);
        let evidence = of_step.find_map(|other| Some(&other.evidence.as_ref()?.tool));
        Some(Written {
            path: format!("{path}.condition"),
            text: expected.condition.as_deref()?,
            tool: evidence.unwrap_or(&expected.step),
            dialect: Dialect::Step,
            allows: true,
            is_evidence: evidence.is_some(),
            earlier_steps: workflow.steps.get(..step).unwrap_or_default(),
        })
    })
}
