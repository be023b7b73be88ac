//! `use_skill`: lists the Skills that the Job may invoke, and invokes one of them in a child Job (`docs/explanation/engine.md`,
//! section 4).

use super::definition::{ToolEffect, core_tool, read_arguments};
use super::people::ASK_USER;
use crate::run::Run;
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::children::{MAX_GOAL_BYTES, VisibleSkill, may_invoke};
pub use bloomery_crds::core_tools::USE_SKILL;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Limits, RequestedChild, SkillSpec};
use serde::Deserialize;
use serde_json::{Value, json};

/// The condition that is true for the calls of [`USE_SKILL`] that may start a child.
pub(crate) const INVOKES: &str = "action == 'invoke'";

/// The most Skills in the answer to one call.
const MAX_LISTED: usize = 100;

/// The most candidates that an error names.
const MAX_CANDIDATES: usize = 8;

/// The longest name in an error, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

/// The longest name of a Skill, and the longest query, in characters.
const MAX_QUERY_CHARS: usize = 256;

/// Returns `use_skill` if the Job can have children, and its Skill names others.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    (run.can_have_children && !run.skill.skills.is_empty()).then(use_skill).into_iter().collect()
}

pub(super) fn use_skill() -> CatalogueTool {
    let count = json!({"type": "integer", "minimum": 1});
    core_tool(
        USE_SKILL,
        "Delegates a part of the goal to another Skill: another agent with its own tools works on it. list returns the Skills that \
         you may invoke, find those that match a query. invoke runs a Skill until it has ended, and returns its outcome and \
         answer. Its agent knows only the goal that you pass.",
        json!({
            "type": "object", "required": ["action"], "additionalProperties": false,
            "properties": {
                "action": {"type": "string", "enum": ["list", "find", "invoke"]},
                "name": {
                    "type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS,
                    "description": "The name of the Skill. Only for invoke.",
                },
                "query": {
                    "type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS,
                    "description": "Words that the name or the description of the Skill has. Only for find.",
                },
                "goal": {
                    "type": "string", "minLength": 1, "maxLength": MAX_GOAL_BYTES,
                    "description": "The complete goal, with all values that the agent needs. Only for invoke.",
                },
                "resources": {
                    "type": "array", "maxItems": RequestedChild::MAX_RESOURCES, "items": {"type": "string"},
                    "description": "The names of your resources that the agent gets under the same names. Only for invoke.",
                },
                "limits": {
                    "type": "object", "additionalProperties": false,
                    "description": "The limits of the agent, at most what is left of yours. Default: half of what is left.",
                    "properties": {
                        "steps": count, "toolCalls": count, "tokens": count,
                        "duration": {"type": "string", "pattern": "^([1-9][0-9]{0,5}(h|m|s))+$", "maxLength": 20},
                    },
                },
            },
        }),
        ToolEffect::Repeated,
    )
}

/// A call of `use_skill`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SkillUse {
    /// Lists all Skills.
    List,
    /// Lists the Skills that match a query.
    Find(String),
    /// Invokes a Skill.
    Invoke(Invocation),
}

/// The invocation of a Skill.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Invocation {
    /// The name, as the model wrote it.
    pub name: String,
    /// The goal of the child.
    pub goal: String,
    /// The names of the resources that the child gets.
    pub resources: Vec<String>,
    /// The limits that the model asks for.
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    name: Option<String>,
    query: Option<String>,
    goal: Option<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Find,
    Invoke,
}

impl SkillUse {
    /// Reads the arguments of a call. The names `list` and `find` of an invocation stand for these actions.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) fn read(arguments: &Value) -> Result<Self, String> {
        let Arguments { action, name, query, goal, resources, limits } =
            Arguments::deserialize(arguments).map_err(|error| format!("The arguments are invalid: {error}."))?;
        let action = match (action, name.as_deref()) {
            (Action::Invoke, Some("list")) => Action::List,
            (Action::Invoke, Some("find")) => Action::Find,
            (action, _) => action,
        };
        let missing = |field: &str| format!("The argument {field} is missing.");
        match action {
            Action::List => Ok(Self::List),
            Action::Find => Ok(Self::Find(query.or(goal).ok_or_else(|| missing("query"))?)),
            Action::Invoke => {
                let name = name.ok_or_else(|| missing("name"))?;
                let goal = goal.filter(|goal| !goal.trim().is_empty()).ok_or_else(|| missing("goal"))?;
                if goal.len() > MAX_GOAL_BYTES {
                    return Err(format!(
                        "The goal has {} bytes, and at most {MAX_GOAL_BYTES} are allowed.",
                        goal.len()
                    ));
                }
                Ok(Self::Invoke(Invocation { name, goal, resources, limits }))
            }
        }
    }
}

/// Returns whether a call of a tool only lists Skills. A call whose arguments cannot be read may invoke one.
pub(crate) fn only_lists(tool: &CatalogueTool, arguments: Option<&Value>) -> bool {
    is_use_skill(tool)
        && arguments
            .is_some_and(|arguments| matches!(SkillUse::read(arguments), Ok(SkillUse::List | SkillUse::Find(_))))
}

/// Returns whether a tool is `use_skill`.
pub(crate) fn is_use_skill(tool: &CatalogueTool) -> bool {
    tool.source == ToolSource::Core && tool.name == USE_SKILL
}

/// Answers a call that lists Skills. An error is a sentence for the model.
pub fn answer(spec: &SkillSpec, skills: &[VisibleSkill], arguments: &str) -> Result<String, String> {
    let arguments: Value = read_arguments(arguments)?;
    let allowed = allowed(spec, skills);
    match SkillUse::read(&arguments)? {
        SkillUse::List if allowed.is_empty() => Err("There is no Skill that you may invoke.".to_owned()),
        SkillUse::List => Ok(listed(&allowed)),
        SkillUse::Find(query) => {
            let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
            let matches = |skill: &&&VisibleSkill| {
                let text = format!("{} {}", skill.name, skill.description).to_lowercase();
                words.iter().all(|word| text.contains(word.as_str()))
            };
            let found: Vec<&VisibleSkill> = allowed.iter().filter(matches).copied().collect();
            if found.is_empty() { Err(not_found(&query)) } else { Ok(listed(&found)) }
        }
        SkillUse::Invoke(_) => Err("The call invokes a Skill.".to_owned()),
    }
}

/// Returns the Skills that the Skill of the Job names.
fn allowed<'a>(spec: &SkillSpec, skills: &'a [VisibleSkill]) -> Vec<&'a VisibleSkill> {
    skills.iter().filter(|skill| may_invoke(&spec.skills, &skill.name)).collect()
}

fn listed(skills: &[&VisibleSkill]) -> String {
    let line = |skill: &&VisibleSkill| {
        let VisibleSkill { name, description, resources } = skill;
        let needed = if resources.is_empty() {
            String::new()
        } else {
            format!(" (needs the resources {})", resources.join(", "))
        };
        format!("- {name}: {description}{needed}")
    };
    let mut lines: Vec<String> = skills.iter().take(MAX_LISTED).map(line).collect();
    if let Some(further) = skills.len().checked_sub(MAX_LISTED).filter(|further| *further > 0) {
        lines.push(format!("There are {further} more: look for them with find."));
    }
    lines.join("\n")
}

/// Resolves a name: the Skill of exactly this name, or else the only one whose name contains it.
///
/// # Errors
/// A sentence for the model, if no Skill or more than one matches.
pub(crate) fn resolve<'a>(
    spec: &SkillSpec,
    skills: &'a [VisibleSkill],
    name: &str,
) -> Result<&'a VisibleSkill, String> {
    let allowed = allowed(spec, skills);
    if let Some(exact) = allowed.iter().copied().find(|skill| skill.name == name) {
        return Ok(exact);
    }
    let part = name.trim().to_lowercase();
    let matches: Vec<&VisibleSkill> =
        allowed.into_iter().filter(|skill| !part.is_empty() && skill.name.contains(&part)).collect();
    match matches.as_slice() {
        [] => Err(not_found(name)),
        [only] => Ok(*only),
        several => {
            let shown: Vec<&str> = several.iter().take(MAX_CANDIDATES).map(|skill| skill.name.as_str()).collect();
            let further = if several.len() > shown.len() { " and others" } else { "" };
            Err(format!(
                "Several Skills match {:?}: {}{further}. Ask the user which one with {ASK_USER}, then invoke it by its exact name.",
                bounded(name, MAX_SHOWN_BYTES),
                shown.join(", ")
            ))
        }
    }
}

fn not_found(name: &str) -> String {
    format!(
        "No Skill that you may invoke matches {:?}. Call {USE_SKILL} with the action list for all of them.",
        bounded(name, MAX_SHOWN_BYTES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn skills() -> Vec<VisibleSkill> {
        let skill = |name: &str, description: &str, resources: &[&str]| VisibleSkill {
            name: name.into(),
            description: description.into(),
            resources: resources.iter().map(|name| (*name).into()).collect(),
        };
        vec![
            skill("bill", "Writes bills", &[]),
            skill("billing-eu", "Answers questions about bills", &["ledger", "shop"]),
            skill("billing-us", "Answers questions about bills", &[]),
            skill("shipping", "Tracks a parcel", &[]),
        ]
    }

    fn spec(skills: &[&str]) -> SkillSpec {
        serde_json::from_value(json!({"problem": {"statement": "Help"}, "skills": skills})).unwrap()
    }

    #[rstest]
    #[case::exact_before_partial(&["*"], "bill", Ok("bill"))]
    #[case::a_single_partial(&["*"], "ship", Ok("shipping"))]
    #[case::in_another_case(&["*"], " Ship ", Ok("shipping"))]
    #[case::a_single_allowed_one(&["bill", "billing-us"], "billing", Ok("billing-us"))]
    #[case::several(
        &["*"], "billing",
        Err("Several Skills match \"billing\": billing-eu, billing-us. Ask the user which one with ask_user, then invoke it by its exact name.")
    )]
    #[case::none(
        &["*"], "refunds",
        Err("No Skill that you may invoke matches \"refunds\". Call use_skill with the action list for all of them.")
    )]
    #[case::not_allowed(
        &["bill"], "shipping",
        Err("No Skill that you may invoke matches \"shipping\". Call use_skill with the action list for all of them.")
    )]
    #[case::an_empty_name(
        &["*"], " ", Err("No Skill that you may invoke matches \" \". Call use_skill with the action list for all of them.")
    )]
    fn a_name_resolves_to_one_skill(
        #[case] allowed: &[&str],
        #[case] name: &str,
        #[case] expected: Result<&str, &str>,
    ) {
        let skills = skills();
        let resolved = resolve(&spec(allowed), &skills, name).map(|skill| skill.name.as_str());
        assert_eq!(resolved.as_ref().copied().map_err(String::as_str), expected);
    }

    #[rstest]
    #[case::list(json!({"action": "list"}), Ok(SkillUse::List))]
    #[case::find(json!({"action": "find", "query": "bills"}), Ok(SkillUse::Find("bills".into())))]
    #[case::list_by_name(json!({"action": "invoke", "name": "list"}), Ok(SkillUse::List))]
    #[case::find_by_name(
        json!({"action": "invoke", "name": "find", "goal": "bills"}), Ok(SkillUse::Find("bills".into()))
    )]
    #[case::find_nothing(json!({"action": "find"}), Err("The argument query is missing."))]
    #[case::no_name(json!({"action": "invoke", "goal": "x"}), Err("The argument name is missing."))]
    #[case::no_goal(json!({"action": "invoke", "name": "bill"}), Err("The argument goal is missing."))]
    #[case::a_blank_goal(json!({"action": "invoke", "name": "bill", "goal": " "}), Err("The argument goal is missing."))]
    fn the_names_list_and_find_stand_for_the_actions(
        #[case] arguments: Value,
        #[case] expected: Result<SkillUse, &str>,
    ) {
        assert_eq!(SkillUse::read(&arguments), expected.map_err(str::to_owned));
    }

    #[test]
    fn an_invocation_has_a_goal_within_its_bound_resources_and_limits() {
        let arguments = |goal: &str| json!({"action": "invoke", "name": "bill", "goal": goal, "resources": ["shop"], "limits": {"steps": 3}});
        let Ok(SkillUse::Invoke(invocation)) = SkillUse::read(&arguments("Write it")) else { panic!() };
        assert_eq!((invocation.name.as_str(), invocation.goal.as_str()), ("bill", "Write it"));
        assert_eq!((invocation.resources, invocation.limits.steps), (vec!["shop".to_owned()], Some(3)));
        // 4,096 characters, and twice as many bytes.
        let error = SkillUse::read(&arguments(&"é".repeat(4096))).unwrap_err();
        assert_eq!(error, "The goal has 8192 bytes, and at most 4096 are allowed.");
    }

    #[rstest]
    #[case::list(&["billing-eu", "ship"], json!({"action": "list"}), Ok("- billing-eu: Answers questions about bills (needs the resources ledger, shop)"))]
    #[case::find(&["*"], json!({"action": "find", "query": "PARCEL tracks"}), Ok("- shipping: Tracks a parcel"))]
    #[case::find_nothing(
        &["bill"], json!({"action": "find", "query": "parcel"}),
        Err("No Skill that you may invoke matches \"parcel\". Call use_skill with the action list for all of them.")
    )]
    #[case::none(&["other"], json!({"action": "list"}), Err("There is no Skill that you may invoke."))]
    fn only_skills_that_the_skill_names_are_listed(
        #[case] allowed: &[&str],
        #[case] arguments: Value,
        #[case] expected: Result<&str, &str>,
    ) {
        let answer = answer(&spec(allowed), &skills(), &arguments.to_string());
        assert_eq!(answer.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn a_list_is_bounded_and_says_how_many_skills_it_leaves_out() {
        let skills: Vec<VisibleSkill> =
            (0..150).map(|n| VisibleSkill { name: format!("skill-{n}"), ..VisibleSkill::default() }).collect();
        let answer = answer(&spec(&["*"]), &skills, r#"{"action": "list"}"#).unwrap();
        assert_eq!(answer.lines().count(), MAX_LISTED + 1);
        assert!(answer.ends_with("There are 50 more: look for them with find."), "{answer}");
    }

    #[test]
    fn only_a_call_that_certainly_lists_is_a_read() {
        let tool = use_skill();
        let lists = |arguments: Value| only_lists(&tool, Some(&arguments));
        assert!(lists(json!({"action": "list"})) && lists(json!({"action": "invoke", "name": "find", "query": "x"})));
        assert!(!lists(json!({"action": "invoke", "name": "bill", "goal": "x"})) && !lists(json!({"action": "find"})));
        assert!(!lists(json!({"action": "list", "unknown": 1})) && !only_lists(&tool, None));
        let of_server = CatalogueTool { source: ToolSource::Server, ..use_skill() };
        assert!(!only_lists(&of_server, Some(&json!({"action": "list"}))));
    }
}
