//! The places of a Skill that name tools.

use crate::v1alpha1::{Policy, SkillSpec, ToolDeclaration};

/// A name of a tool in a Skill, or a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTool<'a> {
    /// The path of the field.
    pub path: String,
    /// The name.
    pub name: &'a str,
    /// The place.
    pub place: Place<'a>,
}

/// The place of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place<'a> {
    /// A declaration in `tools`.
    Declaration(&'a ToolDeclaration),
    /// A rule in `policy.approvals`.
    Approval,
    /// A limit in `policy.limits`.
    Limit,
    /// The evidence for a step of a workflow.
    Evidence,
    /// The tools that the policy or an intent allows: this list.
    Allowed(&'a [String]),
    /// The tools that the policy blocks.
    Blocked,
    /// A step of a workflow. It need not be a tool.
    Step,
    /// The tools with an effect that the test of a feature may call.
    AllowedInTest,
}

/// Returns the names of tools in a Skill: first those of declarations, then those of approvals, and then the others.
pub fn named_tools(spec: &SkillSpec) -> impl Iterator<Item = NamedTool<'_>> {
    let declared = spec.tools.iter().enumerate().map(|(at, tool)| NamedTool {
        path: format!("spec.tools[{at}].name"),
        name: &tool.name,
        place: Place::Declaration(tool),
    });
    let intents = spec.intents.iter().flat_map(|intents| &intents.supported).enumerate();
    let intents = intents.filter_map(|(at, intent)| {
        let tools = intent.tools.as_deref()?;
        Some(list(format!("spec.intents.supported[{at}].tools"), tools, Place::Allowed(tools)))
    });
    let tests = spec.features.iter().enumerate();
    let tests =
        tests.map(|(at, feature)| list(format!("spec.features[{at}].allow"), &feature.allow, Place::AllowedInTest));
    declared.chain(spec.policy.iter().flat_map(of_policy)).chain(intents.flatten()).chain(tests.flatten())
}

fn of_policy(policy: &Policy) -> impl Iterator<Item = NamedTool<'_>> {
    let approvals = policy.approvals.iter().enumerate().map(|(at, rule)| NamedTool {
        path: format!("spec.policy.approvals[{at}].toolId"),
        name: &rule.tool_id,
        place: Place::Approval,
    });
    let limits = policy.limits.iter().enumerate().map(|(at, limit)| NamedTool {
        path: format!("spec.policy.limits[{at}].tool"),
        name: &limit.tool,
        place: Place::Limit,
    });
    let evidence = policy.expectations().filter_map(|(path, _, expected)| {
        let name = &expected.evidence.as_ref()?.tool;
        Some(NamedTool { path: format!("{path}.evidence.tool"), name, place: Place::Evidence })
    });
    let allowed = policy.tools.iter().filter_map(|tools| tools.allowed.as_deref());
    let allowed = allowed.flat_map(|tools| list("spec.policy.tools.allowed".to_owned(), tools, Place::Allowed(tools)));
    let blocked = policy.tools.iter();
    let blocked =
        blocked.flat_map(|tools| list("spec.policy.tools.blocked".to_owned(), &tools.blocked, Place::Blocked));
    let steps =
        policy.workflows.iter().enumerate().flat_map(|(at, workflow)| {
            list(format!("spec.policy.workflows[{at}].steps"), &workflow.steps, Place::Step)
        });
    approvals.chain(limits).chain(evidence).chain(allowed).chain(blocked).chain(steps)
}

/// Returns the names of a list.
fn list<'a>(path: String, names: &'a [String], place: Place<'a>) -> impl Iterator<Item = NamedTool<'a>> {
    names.iter().enumerate().map(move |(at, name)| NamedTool { path: format!("{path}[{at}]"), name, place })
}
