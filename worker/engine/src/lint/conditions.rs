//! The lint of conditions. They are compiled as in the worker, and their arguments are compared with the declared inputs, by
//! name and by type.

use super::finding::Finding;
use crate::condition::{Condition, Defect};
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration, ToolInput};

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let of_tools = spec.tools.iter().enumerate().filter_map(|(at, tool)| {
        let condition = tool.policy.as_ref()?.condition.as_deref()?;
        Some(check_condition(&format!("spec.tools[{at}].policy.condition"), condition, Some(tool)))
    });
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).enumerate();
    let of_approvals = approvals.filter_map(|(at, rule)| {
        let tool = spec.tools.iter().find(|tool| tool.name == rule.tool_id);
        Some(check_condition(&format!("spec.policy.approvals[{at}].when"), rule.when.as_deref()?, tool))
    });
    of_tools.chain(of_approvals).flatten().collect()
}

fn check_condition(path: &str, text: &str, tool: Option<&ToolDeclaration>) -> Vec<Finding> {
    let Ok(condition) = Condition::compile(text) else {
        let finding = |fault| Finding::error(path, format!("the condition cannot be compiled: {fault}"));
        return Condition::faults(text).into_iter().map(finding).collect();
    };
    let declared = tool.map_or(&[][..], |tool| &tool.inputs);
    let defects =
        condition.defects(declared).into_iter().map(|defect| defect_finding(path, defect, &condition, declared));
    let mut findings: Vec<Finding> = defects.collect();
    let Some(tool) = tool.filter(|tool| !tool.inputs.is_empty()) else { return findings };
    let inputs = || tool.inputs.iter().map(|input| input.name.as_str());
    let unknown = condition.arguments().into_iter().filter(|name| !inputs().any(|input| input == *name));
    findings.extend(unknown.map(|name| {
        let message = format!(
            "{} declares no input {name:?}: the condition has no result for a call without it, which is then denied or held",
            tool.name
        );
        Finding::warning(path, message).nearest(name, inputs())
    }));
    findings
}

fn defect_finding(path: &str, defect: Defect, condition: &Condition, declared: &[ToolInput]) -> Finding {
    let finding = match defect {
        Defect::Undecidable(reason) => Finding::error(path, format!("the condition never has a result: {reason}")),
        Defect::Constant(part) => Finding::warning(path, format!("a part of the condition is constant: {part}")),
    };
    let named = condition.arguments();
    let kinds: Vec<String> = declared
        .iter()
        .filter(|input| named.contains(input.name.as_str()))
        .map(|input| format!("{} is declared as {}", input.name, input.kind))
        .collect();
    if kinds.is_empty() {
        finding.hint("a condition must be true or false and compare values of one kind, such as \"amount > 500\"")
    } else {
        finding.hint(kinds.join(", "))
    }
}
