//! The lint of the lists, tools and steps that conditions read.

use super::finding::Finding;
use super::known_tools::KnownTools;
use super::unmatched::unmatched;
use crate::condition::{Condition, Dialect, Node, Written, written};
use bloomery_crds::lists;
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
    let is_step = written.dialect == Dialect::Step && !written.is_evidence;
    if is_step && known.is_complete() && known.matching(written.tool).next().is_none() {
        let message = format!("the step {:?} is not a tool, so no call can meet the condition", written.tool);
        findings.push(
            Finding::error(path, message).hint("name the tool whose result closes the step: evidence: {tool: NAME}"),
        );
    }
    findings
}

fn unknown_list(path: &str, name: &str, spec: &SkillSpec) -> Option<Finding> {
    let names = || spec.policy.iter().flat_map(lists::names);
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
    let Some(policy) = spec.policy.as_ref().filter(|policy| lists::names(policy).next().is_some()) else {
        return Vec::new();
    };
    let compiled: Vec<Condition> =
        written(spec).iter().filter_map(|written| Condition::compile_as(written.text, written.dialect).ok()).collect();
    let nodes = compiled.iter().flat_map(Condition::nodes);
    let used: BTreeSet<&str> = nodes
        .filter_map(|node| match node {
            Node::NamedList(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let unused = lists::names(policy).filter(|name| !used.contains(name));
    let finding = |name: &str| {
        let message = "no condition reads the list, so it has no effect";
        let field = if policy.lists.contains_key(name) { "lists" } else { "listsFrom" };
        Finding::warning(format!("spec.policy.{field}.{name}"), message)
            .hint(format!("write a condition such as \"!(recipient in lists.{name})\""))
    };
    unused.map(finding).collect()
}
