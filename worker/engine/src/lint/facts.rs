//! The lint of the lists, tools and steps that conditions read.

use super::finding::Finding;
use super::known_tools::KnownTools;
use super::unmatched::unmatched;
use crate::condition::{Condition, Dialect, Node, Written, written};
use bloomery_crds::v1alpha1::SkillSpec;
use std::collections::BTreeSet;

/// Returns the findings about the names in a condition that are no arguments.
pub(super) fn findings(
    written: &Written<'_>,
    condition: &Condition,
    spec: &SkillSpec,
    known: &KnownTools,
) -> Vec<Finding> {
    let path = written.path.as_str();
    let mut findings: Vec<Finding> = condition
        .nodes()
        .into_iter()
        .filter_map(|node| match node {
            Node::NamedList(name) => unknown_list(path, name, spec),
            Node::FromTool(_, tool) | Node::Earlier(_, tool) => {
                let is_unmatched = known.matching(tool).next().is_none();
                is_unmatched.then(|| unmatched(path.to_owned(), tool, spec, known)).flatten()
            }
            Node::Step(name) => unknown_step(path, name, written),
            _ => None,
        })
        .collect();
    if written.dialect == Dialect::Step && known.is_complete() && known.matching(written.tool).next().is_none() {
        let message = format!("the step {:?} is not a tool, so no call can meet the condition", written.tool);
        findings.push(Finding::error(path, message));
    }
    findings
}

fn unknown_list(path: &str, name: &str, spec: &SkillSpec) -> Option<Finding> {
    let names = || spec.policy.iter().flat_map(|policy| policy.lists.keys()).map(String::as_str);
    let message = format!("spec.policy.lists has no list {name:?}");
    (!names().any(|known| known == name)).then(|| Finding::error(path, message).nearest(name, names()))
}

fn unknown_step(path: &str, name: &str, written: &Written<'_>) -> Option<Finding> {
    let names = || written.earlier_steps.iter().map(String::as_str);
    let message = format!("no step before {:?} has the name {name:?}", written.tool);
    (!names().any(|known| known == name)).then(|| Finding::error(path, message).nearest(name, names()))
}

/// Warns of lists that no condition reads.
pub(super) fn unused(spec: &SkillSpec) -> Vec<Finding> {
    let Some(policy) = spec.policy.as_ref().filter(|policy| !policy.lists.is_empty()) else { return Vec::new() };
    let compiled: Vec<Condition> =
        written(spec).iter().filter_map(|written| Condition::compile_as(written.text, written.dialect).ok()).collect();
    let nodes = compiled.iter().flat_map(Condition::nodes);
    let used: BTreeSet<&str> = nodes
        .filter_map(|node| match node {
            Node::NamedList(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let unused = policy.lists.keys().filter(|name| !used.contains(name.as_str()));
    let finding = |name: &String| {
        let message = "no condition reads the list, so it has no effect";
        Finding::warning(format!("spec.policy.lists.{name}"), message)
            .hint(format!("write a condition such as \"!(recipient in lists.{name})\""))
    };
    unused.map(finding).collect()
}
