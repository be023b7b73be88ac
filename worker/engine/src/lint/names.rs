//! The lint of names: duplicates, names that are allowed and blocked, and intents that nothing declares.

use super::finding::Finding;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{SkillSpec, ToolPolicy, Workflow};
use std::collections::BTreeSet;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let mut findings = duplicates(spec);
    if let Some(policy) = &spec.policy {
        findings.extend(policy.tools.iter().flat_map(allowed_and_blocked));
        let workflows = policy.workflows.iter().enumerate();
        findings.extend(workflows.flat_map(|(at, workflow)| check_workflow(at, workflow, spec)));
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
    findings.extend(find_duplicates(
        "spec.features",
        ".name",
        spec.features.iter().map(|feature| feature.name.as_str()),
    ));
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

/// Warns of allowed names that are also blocked.
fn allowed_and_blocked(rules: &ToolPolicy) -> Vec<Finding> {
    let allowed = rules.allowed.iter().flatten().enumerate();
    allowed
        .filter_map(|(at, name)| {
            let blocked = rules.blocked.iter().find(|pattern| matches(pattern, name))?;
            let message = format!("{name:?} is also blocked by {blocked:?}, and blocked wins");
            Some(Finding::warning(format!("spec.policy.tools.allowed[{at}]"), message))
        })
        .collect()
}

fn check_workflow(at: usize, workflow: &Workflow, spec: &SkillSpec) -> Vec<Finding> {
    let path = format!("spec.policy.workflows[{at}]");
    let mut findings = find_duplicates(&format!("{path}.steps"), "", workflow.steps.iter().map(String::as_str));
    let ids = || spec.intents.iter().flat_map(|intents| &intents.supported).map(|intent| intent.id.as_str());
    let unknown = workflow.intents.iter().enumerate().filter(|(_, id)| !ids().any(|known| known == id.as_str()));
    findings.extend(unknown.map(|(nth, id)| {
        Finding::error(format!("{path}.intents[{nth}]"), format!("{id:?} is not an id in spec.intents.supported"))
            .nearest(id, ids())
    }));
    findings
}
