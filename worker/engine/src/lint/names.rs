//! The lint of names: duplicates, and names that nothing declares.

use super::finding::Finding;
use crate::core_tools;
use crate::tool_policy::matches;
use bloomery_crds::v1alpha1::{Policy, SkillSpec, ToolPolicy, Workflow};
use std::collections::BTreeSet;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let mut findings = duplicates(spec);
    if let Some(policy) = &spec.policy {
        let known = known_tools(spec);
        findings.extend(policy.tools.iter().flat_map(|rules| check_tool_policy(rules, spec, &known)));
        findings.extend(check_approvals(policy, spec, &known));
        let workflows = policy.workflows.iter().enumerate();
        findings.extend(workflows.flat_map(|(at, workflow)| check_workflow(at, workflow, spec, &known)));
    }
    findings
}

/// Finds duplicates in lists whose items have unique names. The API server would refuse them.
fn duplicates(spec: &SkillSpec) -> Vec<Finding> {
    let intents = spec.intents.iter().flat_map(|intents| &intents.supported);
    let workflows = spec.policy.iter().flat_map(|policy| &policy.workflows);
    let mut findings =
        find_duplicates("spec.resources", ".name", spec.resources.iter().map(|resource| resource.name.as_str()));
    findings.extend(find_duplicates("spec.tools", ".name", spec.tools.iter().map(|tool| tool.name.as_str())));
    findings.extend(find_duplicates("spec.intents.supported", ".id", intents.clone().map(|intent| intent.id.as_str())));
    findings.extend(find_duplicates(
        "spec.policy.workflows",
        ".name",
        workflows.map(|workflow| workflow.name.as_str()),
    ));
    for (at, intent) in intents.enumerate() {
        let path = format!("spec.intents.supported[{at}].entities");
        findings.extend(find_duplicates(&path, ".name", intent.entities.iter().map(|entity| entity.name.as_str())));
    }
    for (at, tool) in spec.tools.iter().enumerate() {
        let path = format!("spec.tools[{at}].inputs");
        findings.extend(find_duplicates(&path, ".name", tool.inputs.iter().map(|input| input.name.as_str())));
    }
    findings
}

/// Returns an error for each name that is already earlier in its list.
fn find_duplicates<'a>(path: &str, field: &str, names: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let repeated = names.enumerate().filter(|(_, name)| !seen.insert(*name));
    repeated
        .map(|(at, name)| Finding::error(format!("{path}[{at}]{field}"), format!("{name:?} is a duplicate")))
        .collect()
}

fn check_tool_policy(rules: &ToolPolicy, spec: &SkillSpec, known: &[&str]) -> Vec<Finding> {
    let allowed = || rules.allowed.iter().flatten().enumerate();
    let mut findings: Vec<Finding> = allowed()
        .filter_map(|(at, name)| {
            let blocked = rules.blocked.iter().find(|pattern| matches(pattern, name))?;
            let message = format!("{name:?} is also blocked by {blocked:?}, and blocked wins");
            Some(Finding::warning(format!("spec.policy.tools.allowed[{at}]"), message))
        })
        .collect();
    let lists = [("allowed", allowed().collect::<Vec<_>>()), ("blocked", rules.blocked.iter().enumerate().collect())];
    for (list, patterns) in lists {
        // Without declared tools, only the server knows the names.
        let unknown = patterns
            .into_iter()
            .filter(|(_, pattern)| !spec.tools.is_empty() && !known.iter().any(|tool| matches(pattern, tool)));
        findings
            .extend(unknown.map(|(at, name)| undeclared_tool(format!("spec.policy.tools.{list}[{at}]"), name, known)));
    }
    findings
}

fn check_approvals(policy: &Policy, spec: &SkillSpec, known: &[&str]) -> Vec<Finding> {
    let unknown = |name: &str| !spec.tools.is_empty() && !known.contains(&name);
    let approvals = policy.approvals.iter().enumerate().filter(|(_, rule)| unknown(&rule.tool_id));
    approvals
        .map(|(at, rule)| undeclared_tool(format!("spec.policy.approvals[{at}].toolId"), &rule.tool_id, known))
        .collect()
}

fn check_workflow(at: usize, workflow: &Workflow, spec: &SkillSpec, known: &[&str]) -> Vec<Finding> {
    let path = format!("spec.policy.workflows[{at}]");
    let mut findings = find_duplicates(&format!("{path}.steps"), "", workflow.steps.iter().map(String::as_str));
    let ids = || spec.intents.iter().flat_map(|intents| &intents.supported).map(|intent| intent.id.as_str());
    let unknown = workflow.intents.iter().enumerate().filter(|(_, id)| !ids().any(|known| known == id.as_str()));
    findings.extend(unknown.map(|(nth, id)| {
        Finding::error(format!("{path}.intents[{nth}]"), format!("{id:?} is not an id in spec.intents.supported"))
            .nearest(id, ids())
    }));
    // A step need not be a tool. But a step that is nearly the name of a tool is probably a typing error.
    let steps = workflow.steps.iter().enumerate().filter(|(_, step)| !known.contains(&step.as_str()));
    findings.extend(steps.filter_map(|(nth, step)| {
        let near = bloomery_crds::nearest::nearest(step, known.iter().copied())?;
        let message = format!("{step:?} is not a tool in spec.tools, so subgoal_done has to close it");
        Some(Finding::warning(format!("{path}.steps[{nth}]"), message).hint(format!("did you mean {near:?}?")))
    }));
    findings
}

fn undeclared_tool(path: String, name: &str, known: &[&str]) -> Finding {
    let finding = Finding::warning(
        path,
        format!("spec.tools declares no tool {name:?}: it has an effect only if the MCP server lists it"),
    );
    finding.nearest(name.trim_end_matches('*'), known.iter().copied())
}

/// Returns the tools that a Skill declares, and the core tools.
pub(super) fn known_tools(spec: &SkillSpec) -> Vec<&str> {
    spec.tools.iter().map(|tool| tool.name.as_str()).chain(core_tools::names()).collect()
}
