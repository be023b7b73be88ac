//! The lint of conditions. They are compiled as in the worker, and their arguments are compared, by name and by type, with those of
//! the tools that the rule names.

use super::facts;
use super::finding::Finding;
use super::known_tools::KnownTools;
use crate::condition::{Condition, Defect, Signature, Written, written};
use bloomery_crds::v1alpha1::SkillSpec;

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    written(spec).iter().flat_map(|written| check(written, spec, known)).collect()
}

fn check(written: &Written<'_>, spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let path = written.path.as_str();
    let Ok(condition) = Condition::compile_as(written.text, written.dialect) else {
        let finding = |fault| Finding::error(path, format!("the condition cannot be compiled: {fault}"));
        return Condition::faults(written.text, written.dialect).into_iter().map(finding).collect();
    };
    let tools: Vec<(&str, &Signature)> = known.matching(written.tool).collect();
    // Without a known tool, any argument may have any type.
    let nothing = Signature::default();
    let signatures = if tools.is_empty() { vec![&nothing] } else { tools.iter().map(|(_, known)| *known).collect() };
    let mut findings: Vec<Finding> = Vec::new();
    for signature in signatures {
        for defect in condition.defects(signature) {
            let finding = defect_finding(path, &defect, &condition, signature);
            // Several tools of a pattern may have the same arguments.
            if findings.iter().all(|found| found.message != finding.message) {
                findings.push(finding);
            }
        }
    }
    findings.extend(unknown_arguments(written, &condition, &tools, known));
    findings.extend(facts::findings(written, &condition, spec, known));
    findings
}

/// Finds the arguments that no tool of the rule has.
fn unknown_arguments(
    Written { path, tool, .. }: &Written<'_>,
    condition: &Condition,
    tools: &[(&str, &Signature)],
    known: &KnownTools,
) -> Vec<Finding> {
    if tools.is_empty() {
        return Vec::new();
    }
    let is_unknown = |name: &&str| !tools.iter().any(|(_, signature)| signature.may_have(name));
    let finding = |name: &str| {
        let finding = if known.is_complete() {
            let message = format!("no tool that {tool:?} matches has an argument {name:?}");
            Finding::error(path, message)
        } else {
            let message =
                format!("{tool} declares no input {name:?}: if the MCP server lists none either, no Job begins");
            Finding::warning(path, message)
        };
        finding.nearest(name, tools.iter().flat_map(|(_, signature)| signature.names()))
    };
    condition.arguments().into_iter().filter(is_unknown).map(finding).collect()
}

fn defect_finding(path: &str, defect: &Defect, condition: &Condition, signature: &Signature) -> Finding {
    let finding = match defect {
        Defect::Undecidable(reason) => Finding::error(path, format!("the condition never has a result: {reason}")),
        Defect::Constant(part) => Finding::error(path, format!("a part of the condition is constant: {part}")),
    };
    let named = condition.arguments().into_iter();
    let kinds: Vec<String> = named.filter_map(|name| Some(format!("{name} is {}", signature.kinds(name)?))).collect();
    if kinds.is_empty() {
        finding.hint("a condition must be true or false and compare values of one kind, such as \"amount > 500\"")
    } else {
        finding.hint(kinds.join(", "))
    }
}
