//! Finds declared inputs that deny every call, and those whose argument the tools do not have.

use super::finding::{Finding, Severity};
use super::known_tools::KnownTools;
use crate::condition::{Kinds, Signature};
use crate::rules::inputs::pattern_error;
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration, ToolInput};

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, declared) in spec.tools.iter().enumerate() {
        let tools: Vec<_> = known.matching(&declared.name).filter(|_| known.is_complete()).collect();
        for (nth, input) in declared.inputs.iter().enumerate() {
            let path = format!("spec.tools[{at}].inputs[{nth}]");
            findings.extend(unusable_pattern(&path, input));
            // Without the server's list, the declaration itself is all that is known.
            if known.is_complete() {
                findings.extend(unknown_input(&path, declared, input, &tools));
                findings.extend(other_type(&path, input, &tools));
                findings.extend(other_values(&path, input, &tools));
                findings.extend(input_of_another(&path, declared, input, &tools));
            }
        }
    }
    findings
}

fn unusable_pattern(path: &str, input: &ToolInput) -> Option<Finding> {
    let error = pattern_error(input)?;
    Some(Finding::error(format!("{path}.pattern"), format!("every call is denied, because of the pattern: {error}")))
}

/// Finds an argument that no tool has. It is an error if it is required, or has limits, which protect nothing.
fn unknown_input(
    path: &str,
    declared: &ToolDeclaration,
    input: &ToolInput,
    tools: &[(&str, &Signature)],
) -> Option<Finding> {
    let is_known = tools.is_empty() || tools.iter().any(|(_, known)| known.may_have(&input.name));
    let is_required = input.required == Some(true);
    let consequence = if is_required { ", so every call is denied" } else { "" };
    let message = format!("no tool that {:?} matches has an argument {:?}{consequence}", declared.name, input.name);
    let severity = if input.is_limited() || is_required { Severity::Error } else { Severity::Warning };
    (!is_known).then(|| {
        let names = tools.iter().flat_map(|(_, known)| known.names());
        Finding { severity, ..Finding::error(format!("{path}.name"), message).nearest(&input.name, names) }
    })
}

/// Finds an input that only some tools of a declaration have. If it is required, every call of the others is denied. Otherwise its limits
/// do not apply to them, and they may have the value under another name. Limits for every tool (`*`) mean those that have the argument.
fn input_of_another(
    path: &str,
    declared: &ToolDeclaration,
    input: &ToolInput,
    tools: &[(&str, &Signature)],
) -> Option<Finding> {
    let (with, without): (Vec<_>, Vec<_>) = tools.iter().partition(|(_, known)| known.may_have(&input.name));
    let (tool, _) = without.first().filter(|_| !with.is_empty())?;
    let (path, name) = (format!("{path}.name"), &input.name);
    if input.required == Some(true) {
        let message = format!("{tool} has no argument {name:?}, so every call of it is denied");
        let hint = format!("the inputs of {:?} apply to all tools that it matches", declared.name);
        return Some(Finding::error(path, message).hint(hint));
    }
    let message = format!("{tool} has no argument {name:?}, so its calls are not limited");
    let hint = format!("if {tool} has the value under another name, declare inputs for it too");
    (input.is_limited() && declared.name != "*").then(|| Finding::warning(path, message).hint(hint))
}

/// Finds an input that no value can match, because its type at the server is another.
fn other_type(path: &str, input: &ToolInput, tools: &[(&str, &Signature)]) -> Option<Finding> {
    let declared = Kinds::declared(input.kind);
    let kinds = tools.iter().filter_map(|(tool, known)| Some((tool, known.kinds(&input.name)?)));
    let (tool, kinds) = kinds.into_iter().find(|(_, kinds)| *kinds & declared == Kinds::NULL)?;
    let message = format!("{tool} has {} as {kinds}, so every call with it is denied", input.name);
    Some(Finding::error(format!("{path}.type"), message))
}

/// Finds an input that no value can match, because the server lists other values.
fn other_values(path: &str, input: &ToolInput, tools: &[(&str, &Signature)]) -> Option<Finding> {
    input.values.as_ref()?;
    let is_text = |known: &Signature| known.kinds(&input.name).is_some_and(|kinds| kinds.may_be(Kinds::TEXT));
    let (tool, _) = tools.iter().find(|(_, known)| is_text(known) && known.has_no_value(&input.name))?;
    let message = format!("{tool} accepts none of these values for {}, so every call with it is denied", input.name);
    Some(Finding::error(format!("{path}.enum"), message))
}
