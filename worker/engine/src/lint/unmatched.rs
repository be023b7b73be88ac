//! Finds rules that name a tool that does not exist: such a rule protects nothing.

use super::finding::{Finding, Severity};
use super::known_tools::{KnownTools, allows_unmatched};
use crate::condition::Signature;
use crate::core_tools;
use crate::rules::guardrail::{may_be_name, reads_as_tool};
use bloomery_crds::nearest::{is_near, nearest, nearest_prefix};
use bloomery_crds::v1alpha1::{Policy, SkillSpec, ToolDeclaration, ToolInput};

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let none = Policy::default();
    let policy = spec.policy.as_ref().unwrap_or(&none);
    let is_unmatched = |pattern: &&str| known.matching(pattern).next().is_none();
    let rules = named_tools(spec, policy).into_iter().filter(|(_, name)| is_unmatched(&name.as_str()));
    let mut findings: Vec<Finding> = rules.filter_map(|(path, name)| unmatched(path, &name, spec, known)).collect();
    findings.extend(unmatched_blocks(spec, policy, known));
    findings.extend(unmatched_steps(policy, known));
    findings.extend(misspelt_declarations(spec, known));
    findings.extend(unmatched_allowances(spec, policy, known));
    findings.extend(unmatched_effects(spec, known));
    findings
}

/// Returns the path and the tool of each rule that protects a tool, except `blocked`.
fn named_tools(spec: &SkillSpec, policy: &Policy) -> Vec<(String, String)> {
    let approvals = policy.approvals.iter().enumerate();
    let approvals = approvals.map(|(at, rule)| (format!("spec.policy.approvals[{at}].toolId"), rule.tool_id.clone()));
    let declared = spec.tools.iter().enumerate().filter(|(_, tool)| has_rules(tool));
    let declared = declared.map(|(at, tool)| (format!("spec.tools[{at}].name"), tool.name.clone()));
    let limits = policy.limits.iter().enumerate();
    let limits = limits.map(|(at, limit)| (format!("spec.policy.limits[{at}].tool"), limit.tool.clone()));
    approvals.chain(limits).chain(declared).chain(evidence(policy)).collect()
}

/// Returns whether a declaration limits the calls of a tool.
fn has_rules(tool: &ToolDeclaration) -> bool {
    tool.policy.is_some() || tool.inputs.iter().any(ToolInput::is_limited)
}

/// Returns the path and the tool of each entry of `expect` that names the evidence for a step.
fn evidence(policy: &Policy) -> impl Iterator<Item = (String, String)> {
    policy.expectations().filter_map(|(path, _, expected)| {
        Some((format!("{path}.evidence.tool"), expected.evidence.as_ref()?.tool.clone()))
    })
}

/// Returns the finding about a rule whose tool is not known. `None` if nothing can be said: only the server knows its tools, and the
/// Skill declares none, or the Skill allows such rules.
pub(super) fn unmatched(path: String, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    if known.is_complete() {
        let message = format!("no tool of the MCP server matches {name:?}: the rule protects nothing");
        return (!allows_unmatched(spec)).then(|| with_remedy(Finding::error(path, message), name, known));
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
    if !known.is_complete() || allows_unmatched(spec) || tools.iter().any(|(_, known)| known.names_argument(name)) {
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

/// Finds blocked names that match no tool. Authors block tools that some versions of a server have, so this is an error only if the
/// name is nearly that of a tool, or if no tool can have it. A core tool that no Job has may be blocked in any case.
fn unmatched_blocks(spec: &SkillSpec, policy: &Policy, known: &KnownTools) -> Vec<Finding> {
    let blocked = policy.tools.iter().flat_map(|tools| &tools.blocked).enumerate();
    let core = core_tools::names();
    let unmatched_names =
        blocked.filter(|(_, name)| known.matching(name).next().is_none() && !core.contains(&name.as_str()));
    let finding = |(at, name): (usize, &String)| {
        let path = format!("spec.policy.tools.blocked[{at}]");
        let finding = unmatched(path, name, spec, known)?;
        let is_near = nearest(name.trim_end_matches('*'), known.names()).is_some();
        Some(if is_near || near_prefix(name, known).is_some() || !may_be_name(name) {
            finding
        } else {
            Finding { severity: Severity::Warning, ..finding }
        })
    };
    unmatched_names.filter_map(finding).collect()
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
    finding.hint(if core_tools::names().contains(&name) {
        "a Job has this core tool only if the Skill declares what the tool works on, such as a resource of type filesystem"
    } else {
        "correct the name; if the server may lack the tool, set spec.policy.allowUnmatched: true"
    })
}

fn undeclared(path: String, name: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    // A pattern in `tools` may stand for any tool.
    let may_match = spec.declaration_of(name).is_some();
    let message = format!("spec.tools declares no tool {name:?}: it has an effect only if the MCP server lists it");
    (!spec.tools.is_empty() && !may_match)
        .then(|| Finding::warning(path, message).nearest(name.trim_end_matches('*'), known.names()))
}

/// Finds declarations without rules whose name is probably a typing error. Authors declare tools that only some servers have, so another
/// name that matches no tool is no error.
fn misspelt_declarations(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    if !known.is_complete() || allows_unmatched(spec) {
        return Vec::new();
    }
    let declared: Vec<&str> = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
    let misspelt =
        spec.tools.iter().enumerate().filter(|(_, tool)| !has_rules(tool) && is_misspelt(&tool.name, &declared, known));
    let finding = |(at, tool): (usize, &ToolDeclaration)| {
        let message = format!("no tool of the MCP server matches {:?}: the declaration describes no tool", tool.name);
        with_remedy(Finding::error(format!("spec.tools[{at}].name"), message), &tool.name, known)
    };
    misspelt.map(finding).collect()
}

/// Returns whether a name matches no tool, and is probably a typing error of a tool that its list does not name.
fn is_misspelt(name: &str, list: &[&str], known: &KnownTools) -> bool {
    if known.matching(name).next().is_some() {
        return false;
    }
    if name.ends_with('*') {
        return near_prefix(name, known).is_some();
    }
    known.names().into_iter().any(|tool| is_near(name, tool) && !list.contains(&tool))
}

/// Finds allowed names that match no tool. They allow nothing, which is safe, so this is an error only if the name is probably a typing
/// error: the Job could not call the tool that its author means.
fn unmatched_allowances(spec: &SkillSpec, policy: &Policy, known: &KnownTools) -> Vec<Finding> {
    let allowed = policy.tools.iter().filter_map(|tools| tools.allowed.as_deref());
    let allowed = allowed.map(|names| ("spec.policy.tools.allowed".to_owned(), names));
    let intents = spec.intents.iter().flat_map(|intents| &intents.supported).enumerate();
    let of_intents = intents
        .filter_map(|(at, intent)| Some((format!("spec.intents.supported[{at}].tools"), intent.tools.as_deref()?)));
    let of_list = |(path, names): (String, &[String])| -> Vec<Finding> {
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        let unmatched = list.iter().enumerate().filter(|(_, name)| known.matching(name).next().is_none());
        let finding = |(nth, name): (usize, &&str)| {
            let path = format!("{path}[{nth}]");
            if !known.is_complete() {
                return undeclared(path, name, spec, known);
            }
            let message = format!("no tool of the MCP server matches {name:?}: it allows nothing");
            if is_misspelt(name, &list, known) && !allows_unmatched(spec) {
                return Some(with_remedy(Finding::error(path, message), name, known));
            }
            Some(Finding::warning(path, message).nearest(name.trim_end_matches('*'), known.names()))
        };
        unmatched.filter_map(finding).collect()
    };
    allowed.chain(of_intents).flat_map(of_list).collect()
}

/// Finds tools that the test of a feature may call and that do not exist. The test denies the calls that its author means to allow.
fn unmatched_effects(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let allowed = spec.features.iter().enumerate().flat_map(|(at, feature)| {
        let path = format!("spec.features[{at}].allow");
        feature.allow.iter().enumerate().map(move |(nth, name)| (format!("{path}[{nth}]"), name))
    });
    let unmatched = allowed.filter(|(_, name)| known.matching(name).next().is_none());
    let finding = |(path, name): (String, &String)| {
        if !known.is_complete() {
            return undeclared(path, name, spec, known);
        }
        let message = format!("no tool of the MCP server matches {name:?}: it allows nothing");
        (!allows_unmatched(spec)).then(|| with_remedy(Finding::error(path, message), name, known))
    };
    unmatched.filter_map(finding).collect()
}

/// A step need not be a tool. But a step that is written like a tool, or nearly is one, is probably a typing error: the model could
/// close it without a call of the tool.
fn unmatched_steps(policy: &Policy, known: &KnownTools) -> Vec<Finding> {
    let steps = policy.workflows.iter().enumerate().flat_map(|(at, workflow)| {
        workflow
            .steps
            .iter()
            .enumerate()
            .map(move |(nth, step)| (format!("spec.policy.workflows[{at}].steps[{nth}]"), step))
    });
    let unmatched = steps.filter(|(_, step)| known.matching(step).next().is_none());
    let finding = |(path, step): (String, &String)| {
        let near = nearest(step, known.names());
        let is_pattern = step.contains('*') && !step.contains(char::is_whitespace);
        let is_meant_as_tool = is_pattern || near.is_some() && reads_as_tool(step);
        if known.is_complete() && is_meant_as_tool && policy.allow_unmatched != Some(true) {
            let message = format!("no tool of the MCP server matches {step:?}, so subgoal_done could close the step");
            return Some(with_remedy(Finding::error(path, message), step, known));
        }
        let message = format!("{step:?} is not a tool in spec.tools, so subgoal_done has to close it");
        near.map(|near| Finding::warning(path, message).hint(format!("did you mean {near:?}?")))
    };
    unmatched.filter_map(finding).collect()
}
