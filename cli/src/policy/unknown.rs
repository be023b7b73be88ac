//! Calls of a case that test no rule, because their tool or an argument does not exist. Any call of such a tool is denied.

use super::test_file::{Expected, TestedCall};
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_engine::condition::Signature;
use bloomery_engine::core_tools;
use bloomery_engine::tool::ListedTool;
use serde_json::Value;

/// Returns the reason why the denial of a call tests no rule. A case that gives the reason of the denial means it, and so does a
/// Skill that allows rules without a tool.
pub fn fault(call: &TestedCall, skill: &SkillSpec, tools: &[ListedTool]) -> Option<String> {
    let allows_unmatched = skill.policy.as_ref().and_then(|policy| policy.allow_unmatched) == Some(true);
    if call.expect != Some(Expected::Deny) || call.reason.is_some() || allows_unmatched {
        return None;
    }
    let why = unknown_name(call, skill, tools)?;
    Some(format!("this tests no rule: {why} If it is meant, add the reason of the denial to the case"))
}

fn unknown_name(call: &TestedCall, skill: &SkillSpec, tools: &[ListedTool]) -> Option<String> {
    let core = core_tools::definitions();
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
