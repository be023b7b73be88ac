//! The lint of the lists, tools and steps that conditions read.

use super::finding::Finding;
use super::known_tools::KnownTools;
use super::unmatched::unmatched;
use crate::condition::{Condition, Dialect, Node, Written};
use crate::core_tools;
use bloomery_crds::lists;
use bloomery_crds::v1alpha1::SkillSpec;

/// Returns the findings about the names in a condition that are no arguments.
pub(super) fn findings(
    written: &Written<'_>,
    condition: &Condition,
    spec: &SkillSpec,
    known: &KnownTools,
) -> Vec<Finding> {
    let path = written.path.as_str();
    let nodes = condition.nodes();
    let named = nodes.iter().filter_map(|node| match node {
        Node::NamedList(name) => unknown_list(path, name, spec),
        Node::FromTool(_, tool) | Node::Earlier(_, tool) if known.matching(tool).next().is_none() => {
            unmatched(path, tool, spec, known)
        }
        Node::FromTool(_, tool) => untrusted_source(path, tool, spec, known),
        Node::Step(name) => unknown_step(path, name, written),
        _ => None,
    });
    let quoted = nodes.iter().filter_map(|node| match node {
        Node::FromUser(value) => quoted_argument(path, "fromUser", value, written.tool, known),
        Node::FromTool(value, _) => quoted_argument(path, "fromTool", value, written.tool, known),
        _ => None,
    });
    let mut findings: Vec<Finding> = named.chain(quoted).collect();
    let is_step = written.dialect == Dialect::Step && !written.is_evidence;
    if is_step && known.is_complete() && known.matching(written.tool).next().is_none() {
        let message = format!("the step {:?} is not a tool, so no call can meet the condition", written.tool);
        findings.push(
            Finding::error(path, message).hint("name the tool whose result closes the step: evidence: {tool: NAME}"),
        );
    }
    findings
}

/// Warns of a source that the model can write: the result of a tool with effects, or the answer of a child, may repeat the arguments of the
/// call.
fn untrusted_source(path: &str, pattern: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    let is_read_only = |tool: &str| {
        (core_tools::NAMES.contains(&tool) && tool != core_tools::USE_SKILL)
            || spec.declaration_of(tool).is_some_and(|declared| declared.read_only == Some(true))
    };
    let (tool, _) = known.matching(pattern).find(|(tool, _)| !is_read_only(tool))?;
    let message = format!("{tool} is not readOnly: its result may repeat what the model passes to it");
    Some(
        Finding::warning(path, message)
            .hint("name a tool that only reads, and set readOnly: true for it in spec.tools"),
    )
}

/// Warns of the name of an argument in quotes: `fromUser('recipient')`, `fromTool('recipient', 'get_payees')`.
fn quoted_argument(path: &str, function: &str, value: &Node, tool: &str, known: &KnownTools) -> Option<Finding> {
    let Node::Text(name) = value else { return None };
    let more = if function == "fromTool" { ", ..." } else { "" };
    let message =
        format!("{function}('{name}'{more}) looks for the word {name:?}, and not for the argument of this name");
    let is_argument = known.matching(tool).any(|(_, signature)| signature.names_argument(name));
    is_argument.then(|| Finding::warning(path, message).hint(format!("write {function}({name}{more})")))
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
