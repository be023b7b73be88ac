//! Finds rules that name a tool that does not exist: such a rule protects nothing.

use super::finding::{Finding, Severity};
use super::known_tools::KnownTools;
use crate::condition::Signature;
use crate::core_tools;
use crate::rules::guardrail::{may_be_name, reads_as_tool};
use bloomery_crds::named_tools::{NamedTool, Place, named_tools};
use bloomery_crds::nearest::{is_near, nearest, nearest_prefix};
use bloomery_crds::v1alpha1::SkillSpec;

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let unmatched = named_tools(spec).filter(|named| known.matching(named.name).next().is_none());
    unmatched.filter_map(|named| finding(&named, spec, known)).collect()
}

/// Returns the finding about a name that matches no tool.
fn finding(named: &NamedTool<'_>, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    let NamedTool { path, name, place } = named;
    match place {
        Place::Approval | Place::Limit | Place::Evidence => unmatched(path, name, spec, known),
        Place::Declaration(tool) if tool.has_rules() => unmatched(path, name, spec, known),
        Place::Declaration(_) => misspelt_declaration(path, name, spec, known),
        Place::Blocked => unmatched_block(path, name, spec, known),
        Place::Allowed(list) => unmatched_allowance(path, name, list, (spec, known)),
        Place::AllowedInTest => unmatched_effect(path, name, spec, known),
        Place::Step => unmatched_step(path, name, spec, known),
    }
}

/// Returns the finding about a rule whose tool is not known. `None` if nothing can be said: only the server knows its tools, and the
/// Skill declares none, or the Skill allows such rules.
pub(super) fn unmatched(path: &str, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    if known.is_complete() {
        let message = format!("no tool of the MCP server matches {name:?}: the rule protects nothing");
        return (!spec.allows_unmatched()).then(|| with_remedy(Finding::error(path, message), name, known));
    }
    undeclared(path, name, spec, known)
}

/// Returns the error about an argument that neither a schema nor the Skill names, although a tool accepts it: a call can have the value
/// under another name.
pub(super) fn unnamed_argument(
    path: &str,
    name: &str,
    tools: &[(&str, &Signature)],
    spec: &SkillSpec,
    known: &KnownTools,
) -> Option<Finding> {
    if !known.is_complete() || spec.allows_unmatched() || tools.iter().any(|(_, known)| known.names_argument(name)) {
        return None;
    }
    let (tool, _) = tools.iter().find(|(_, known)| known.may_have(name))?;
    let message = format!("neither the schema of {tool} nor spec.tools[].inputs names the argument {name:?}");
    let finding =
        Finding::error(path, message).nearest(name, tools.iter().flat_map(|(_, signature)| signature.names()));
    Some(if finding.hint.is_some() {
        finding
    } else {
        finding.hint(format!("declare `inputs` for {tool} in spec.tools"))
    })
}

/// Returns the finding about a blocked name. Authors block tools that some versions of a server have, so this is an error only if the name
/// is nearly that of a tool, or if no tool can have it. A core tool that no Job has may be blocked in any case.
fn unmatched_block(path: &str, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    if core_tools::NAMES.contains(&name) {
        return None;
    }
    let finding = unmatched(path, name, spec, known)?;
    let is_near = nearest(name.trim_end_matches('*'), known.names()).is_some();
    let is_error = is_near || near_prefix(name, known).is_some() || !may_be_name(name);
    Some(if is_error { finding } else { Finding { severity: Severity::Warning, ..finding } })
}

/// Returns the beginning of a tool's name of which a prefix with `*` is probably a typing error.
fn near_prefix<'a>(name: &str, known: &'a KnownTools) -> Option<&'a str> {
    nearest_prefix(name.strip_suffix('*')?, known.names())
}

/// Adds the nearest name as a hint. If none is near, names the exception.
pub(super) fn with_remedy(finding: Finding, name: &str, known: &KnownTools) -> Finding {
    if let Some(near) = near_prefix(name, known) {
        return finding.hint(format!("did you mean \"{near}*\"?"));
    }
    let finding = finding.nearest(name.trim_end_matches('*'), known.names());
    if finding.hint.is_some() {
        return finding;
    }
    finding.hint(if core_tools::NAMES.contains(&name) {
        "a Job has this core tool only if the Skill declares what the tool works on, such as a resource of type filesystem"
    } else {
        "correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true"
    })
}

fn undeclared(path: &str, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    // A pattern in `tools` may stand for any tool.
    let may_match = spec.declaration_of(name).is_some();
    let message = format!("spec.tools declares no tool {name:?}: it has an effect only if the MCP server lists it");
    (!spec.tools.is_empty() && !may_match)
        .then(|| Finding::warning(path, message).nearest(name.trim_end_matches('*'), known.names()))
}

/// Returns the finding about a declaration without rules whose name is probably a typing error. Authors declare tools that only some servers
/// have, so another name that matches no tool is no error.
fn misspelt_declaration(path: &str, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    let declared: Vec<&str> = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
    if !known.is_complete() || spec.allows_unmatched() || !is_misspelt(name, &declared, known) {
        return None;
    }
    let message = format!("no tool of the MCP server matches {name:?}: the declaration describes no tool");
    Some(with_remedy(Finding::error(path, message), name, known))
}

/// Returns whether a name that matches no tool is probably a typing error of a tool that its list does not name.
fn is_misspelt(name: &str, list: &[impl AsRef<str>], known: &KnownTools) -> bool {
    if name.ends_with('*') {
        return near_prefix(name, known).is_some();
    }
    known.names().into_iter().any(|tool| is_near(name, tool) && !list.iter().any(|listed| listed.as_ref() == tool))
}

/// Returns the finding about a name in a list of allowed ones. It allows nothing, which is safe, so this is an error only if the name is
/// probably a typing error: the Job could not call the tool that its author means.
fn unmatched_allowance(
    path: &str,
    name: &str,
    list: &[String],
    (spec, known): (&SkillSpec, &KnownTools),
) -> Option<Finding> {
    if !known.is_complete() {
        return undeclared(path, name, spec, known);
    }
    let message = format!("no tool of the MCP server matches {name:?}: it allows nothing");
    if is_misspelt(name, list, known) && !spec.allows_unmatched() {
        return Some(with_remedy(Finding::error(path, message), name, known));
    }
    Some(Finding::warning(path, message).nearest(name.trim_end_matches('*'), known.names()))
}

/// Returns the finding about a tool that the test of a feature may call. The test denies the calls that its author means to allow.
fn unmatched_effect(path: &str, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    if !known.is_complete() {
        return undeclared(path, name, spec, known);
    }
    let message = format!("no tool of the MCP server matches {name:?}: it allows nothing");
    (!spec.allows_unmatched()).then(|| with_remedy(Finding::error(path, message), name, known))
}

/// Returns the finding about a step. A step need not be a tool. But a step that is written like a tool, or nearly is one, is probably a
/// typing error: the model could close it without a call of the tool.
fn unmatched_step(path: &str, step: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    let near = nearest(step, known.names());
    let is_pattern = step.contains('*') && !step.contains(char::is_whitespace);
    let is_meant_as_tool = is_pattern || near.is_some() && reads_as_tool(step);
    if known.is_complete() && is_meant_as_tool && !spec.allows_unmatched() {
        let message = format!("no tool of the MCP server matches {step:?}, so subgoal_done could close the step");
        return Some(with_remedy(Finding::error(path, message), step, known));
    }
    let message = format!("{step:?} is not a tool in spec.tools, so subgoal_done has to close it");
    near.map(|near| Finding::warning(path, message).hint(format!("did you mean {near:?}?")))
}
