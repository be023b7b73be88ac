//! Conditions: compiled as the worker compiles them, and their arguments looked up in the tool's declared inputs.

use super::Finding;
use crate::condition::Condition;
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration};

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let of_tools = spec.tools.iter().enumerate().filter_map(|(at, tool)| {
        let condition = tool.policy.as_ref()?.condition.as_deref()?;
        Some(of_condition(format!("spec.tools[{at}].policy.condition"), condition, Some(tool)))
    });
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).enumerate();
    let of_approvals = approvals.filter_map(|(at, rule)| {
        let tool = spec.tools.iter().find(|tool| tool.name == rule.tool_id);
        Some(of_condition(format!("spec.policy.approvals[{at}].when"), rule.when.as_deref()?, tool))
    });
    of_tools.chain(of_approvals).flatten().collect()
}

fn of_condition(path: String, text: &str, tool: Option<&ToolDeclaration>) -> Vec<Finding> {
    let condition = match Condition::compile(text) {
        Ok(condition) => condition,
        Err(fault) => return vec![Finding::error(path, format!("the condition cannot be compiled: {fault}"))],
    };
    let Some(tool) = tool.filter(|tool| !tool.inputs.is_empty()) else { return Vec::new() };
    let inputs = || tool.inputs.iter().map(|input| input.name.as_str());
    let unknown = condition.arguments().into_iter().filter(|name| !inputs().any(|input| input == *name));
    unknown
        .map(|name| {
            let message = format!(
                "{} declares no input {name:?}: a call without it cannot be decided, and is not allowed as it is",
                tool.name
            );
            Finding::warning(path.clone(), message).nearest(name, inputs())
        })
        .collect()
}
