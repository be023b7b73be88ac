//! Calls of a case whose verdict tests no rule: their tool or an argument does not exist, or only the schema of the tool refuses them.

use super::test_file::{CaseVerdict, TestedCall};
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::v1alpha1::{GateReason, SkillSpec};
use bloomery_engine::condition::Signature;
use bloomery_engine::core_tools;
use bloomery_engine::event::RulingReason;
use bloomery_engine::tool::ListedTool;
use serde_json::Value;

/// Returns the reason why the denial, or the hold, of a call tests no rule. `reasons` are those of the verdict. A case that gives the reason
/// of its verdict means it. A Skill that allows rules without a tool means the names that do not exist.
pub fn fault(call: &TestedCall, skill: &SkillSpec, tools: &[ListedTool], reasons: &[RulingReason]) -> Option<String> {
    let expected = call.expect.filter(|expected| *expected != CaseVerdict::Allow && call.reason.is_none())?;
    let allows_unmatched = skill.policy.as_ref().and_then(|policy| policy.allow_unmatched) == Some(true);
    let unknown = if allows_unmatched { None } else { unknown_name(call, skill, tools) };
    let why = unknown.or_else(|| refused_by_schema(call, skill, reasons))?;
    Some(format!("this tests no rule: {why} If it is meant, add the reason of the {} to the case", noun(expected)))
}

fn noun(verdict: CaseVerdict) -> &'static str {
    if verdict == CaseVerdict::Hold { "hold" } else { "denial" }
}

/// Returns a sentence about a call that only the schema of its tool refuses. Declared inputs are rules of the Skill.
fn refused_by_schema(call: &TestedCall, skill: &SkillSpec, reasons: &[RulingReason]) -> Option<String> {
    let tool = &call.tool;
    let is_only_schema = !reasons.is_empty() && reasons.iter().all(|reason| reason.layer == GateReason::Schema);
    (is_only_schema && skill.inputs_of(tool).next().is_none()).then(|| {
        format!(
            "the schema of {tool} at the server refuses the arguments, and no rule of the Skill does. Write arguments that the schema \
             accepts, or declare the inputs of {tool} in spec.tools."
        )
    })
}

fn unknown_name(call: &TestedCall, skill: &SkillSpec, tools: &[ListedTool]) -> Option<String> {
    let core: Vec<_> = core_tools::definitions(|_| true).collect();
    let of_core = core.iter().map(|tool| (tool.name.as_str(), &tool.input_schema));
    let known: Vec<(&str, &Value)> =
        tools.iter().map(|tool| (tool.name.as_str(), &tool.input_schema)).chain(of_core).collect();
    let Some((name, schema)) = known.iter().find(|(name, _)| *name == call.tool) else {
        let near = did_you_mean(&call.tool, known.iter().map(|(name, _)| *name));
        return Some(format!("there is no tool {:?}.{near}", call.tool));
    };
    let signature = Signature::listed(skill.inputs_of(name), schema);
    let argument = call.arguments.keys().find(|argument| !signature.may_have(argument))?;
    let near = did_you_mean(argument, signature.names());
    Some(format!("{name} has no argument {argument:?}.{near}"))
}
