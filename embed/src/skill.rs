//! Skills, as a host shows them.

use crate::error::{Error, ErrorKind};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Feature, ResourceDeclaration, ResourceType, SkillSpec};
use bloomery_skills::names::name_fault;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The largest number of Skills that an error lists.
const MAX_LISTED: usize = 16;

/// A Skill of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillState {
    /// The name.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The problem that the Skill solves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The reason why no Job can use the Skill, for people; none if Jobs can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The conditions. Only a cluster has some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<SkillCondition>,
    /// The resources that Jobs bind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SkillResource>,
    /// The features, each with its test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<SkillFeature>,
}

impl SkillState {
    /// Returns the state of a Skill without faults, from its spec.
    pub fn new(name: String, spec: &SkillSpec) -> Self {
        Self {
            name,
            display_name: spec.display_name.clone(),
            description: Some(spec.problem.statement.clone()),
            resources: spec.resources.iter().map(SkillResource::from).collect(),
            features: spec.features.iter().map(SkillFeature::from).collect(),
            ..Self::default()
        }
    }
}

/// A condition of a Skill on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillCondition {
    /// The type, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason, as one word.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

/// A resource that Jobs of a Skill bind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillResource {
    /// The name.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// Whether every Job must bind the resource.
    pub required: bool,
    /// The purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl From<&ResourceDeclaration> for SkillResource {
    fn from(declared: &ResourceDeclaration) -> Self {
        Self {
            name: declared.name.clone(),
            kind: declared.kind,
            required: declared.required.unwrap_or(false),
            description: declared.description.clone(),
        }
    }
}

/// A feature of a Skill, with the result of its test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillFeature {
    /// The name.
    pub name: String,
    /// The test.
    pub test_scenario: String,
    /// The result that the test must have.
    pub expected_result: String,
    /// Whether the agent applies the feature only where it fits.
    pub optional: bool,
    /// Whether the latest test passed; none if the runtime knows no test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The reason of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&Feature> for SkillFeature {
    fn from(feature: &Feature) -> Self {
        Self {
            name: feature.name.clone(),
            test_scenario: feature.test_scenario.clone(),
            expected_result: feature.expected_result.clone(),
            optional: !feature.is_required(),
            passed: None,
            reason: None,
        }
    }
}

/// A tool that the policy of a Skill allows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillTool {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
}

/// Returns whether the policy of a Skill allows a tool of its server.
pub(crate) fn allows(spec: &SkillSpec, tool: &str) -> bool {
    let policy = spec.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    policy.is_none_or(|policy| policy.allows(tool) && policy.blocking_entry(tool).is_none())
}

/// Checks that a text is a name of a Skill, and not a path.
///
/// # Errors
/// If it is no name.
pub(crate) fn check_skill_name(name: &str) -> Result<(), Error> {
    match name_fault(name) {
        None => Ok(()),
        Some(fault) => Err(Error::invalid(format!("the name of the Skill is invalid: it {fault}"))),
    }
}

/// Returns the error for the name of a Skill that does not exist in a place, such as `the namespace acme`. `known` are the names of the Skills
/// there.
pub(crate) fn no_such_skill(place: &str, name: &str, known: &[String]) -> Error {
    let near = nearest::did_you_mean(name, known.iter().map(String::as_str));
    let listed = known.get(..MAX_LISTED).unwrap_or(known);
    let others = if listed.is_empty() { String::new() } else { format!(": {}", listed.join(", ")) };
    let more = match known.len() - listed.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!("{place} has no Skill {name}.{near} Create it, or name another one{others}{more}");
    Error::new(ErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::no_others(0, "the namespace acme has no Skill desk3. Create it, or name another one")]
    #[case::a_few(
        2,
        "the namespace acme has no Skill desk3. Did you mean \"desk-0\"? Create it, or name another one: desk-0, desk-1"
    )]
    #[case::many(20, ", desk-15, and 4 more")]
    fn the_error_for_an_unknown_skill_lists_some_others(#[case] count: usize, #[case] end: &str) {
        let known: Vec<String> = (0..count).map(|nth| format!("desk-{nth}")).collect();
        let error = no_such_skill("the namespace acme", "desk3", &known);
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.ends_with(end), "{error}");
    }
}
