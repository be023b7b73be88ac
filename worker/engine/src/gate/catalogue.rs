//! Which tools a Job has: what the server lists, what the Skill says of it, what its policy lets the model see.

use crate::gate::core_tools;
use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use bloomery_crds::Digest;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::{SkillSpec, ToolPolicy};
use std::collections::BTreeMap;

/// The longest tool name that model providers take.
const MAX_ALIAS: usize = 64;

/// Fixes the tools of a Job.
///
/// A name that the server lists twice is ambiguous, and so are two names that share an alias: no such tool is
/// taken, nor one of whose schemas is nested too deep for a line of the log. A call of it is ruled as one of an
/// unknown tool. The order is the server's, which keeps the provider's prompt cache warm.
pub fn fix(run: &Run, listed: Vec<ListedTool>) -> Vec<CatalogueTool> {
    let core = core_tools::offered(run, &listed);
    let listed: Vec<ListedTool> = listed.into_iter().filter(|tool| !core_tools::is_reserved(&tool.name)).collect();
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for tool in &listed {
        *times.entry(tool.name.clone()).or_default() += 1;
    }
    let plain: Vec<String> = listed.iter().map(|tool| tool.name.clone()).filter(|name| is_plain(name)).collect();
    let tools: Vec<CatalogueTool> = listed
        .into_iter()
        .filter(|tool| times.get(&tool.name) == Some(&1) && is_shallow(tool))
        .map(|tool| catalogue_tool(&run.skill, tool, &plain))
        .collect();
    let mut aliases: BTreeMap<String, u32> = BTreeMap::new();
    for tool in &tools {
        *aliases.entry(tool.alias.clone()).or_default() += 1;
    }
    let mut tools: Vec<CatalogueTool> = tools.into_iter().filter(|tool| aliases.get(&tool.alias) == Some(&1)).collect();
    tools.extend(core);
    tools
}

/// Why `policy.tools` does not allow a core tool: they go only by `blocked` (seed 000).
pub fn core_refusal(policy: Option<&ToolPolicy>, tool: &str) -> Option<String> {
    let pattern = policy?.blocked.iter().find(|pattern| matches(pattern, tool))?;
    Some(format!("the Skill's policy.tools.blocked names {pattern:?}"))
}

/// Why `policy.tools` does not allow a tool, or nothing where it does. `blocked` wins; `allowed` absent is `*`.
pub fn policy_refusal(policy: Option<&ToolPolicy>, tool: &str) -> Option<String> {
    let policy = policy?;
    if let Some(refusal) = core_refusal(Some(policy), tool) {
        return Some(refusal);
    }
    let allowed = policy.allowed.as_ref()?;
    (!allowed.iter().any(|pattern| matches(pattern, tool)))
        .then(|| format!("the Skill's policy.tools.allowed does not name {tool:?}"))
}

fn catalogue_tool(skill: &SkillSpec, tool: ListedTool, plain: &[String]) -> CatalogueTool {
    let declared = skill.tools.iter().find(|declared| declared.name == tool.name);
    // A server's hint can take the claim away, never give it: it is the server that is not trusted here.
    let read_only = declared.is_some_and(|d| d.read_only == Some(true)) && tool.read_only_hint() != Some(false);
    let policy = skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    CatalogueTool {
        alias: alias(&tool.name, plain),
        digest: tool.digest(),
        read_only,
        idempotent: declared.is_some_and(|d| d.idempotent == Some(true)),
        source: ToolSource::Server,
        visible: policy_refusal(policy, &tool.name).is_none(),
        description: if tool.description.is_empty() {
            declared.and_then(|declared| declared.description.clone()).unwrap_or_default()
        } else {
            tool.description
        },
        name: tool.name,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
    }
}

fn is_shallow(tool: &ListedTool) -> bool {
    depth(&tool.input_schema) <= MAX_DEPTH
        && tool.output_schema.as_ref().is_none_or(|schema| depth(schema) <= MAX_DEPTH)
}

/// Whether a name, or a beginning of names that ends in `*`, means a tool.
pub(crate) fn matches(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => pattern == tool,
    }
}

fn is_plain(name: &str) -> bool {
    (1..=MAX_ALIAS).contains(&name.len()) && name.bytes().all(is_alias_byte)
}

fn is_alias_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A plain name stands for itself; any other is made plain and told apart by a hash of the whole.
fn alias(name: &str, plain: &[String]) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    let hash = Digest::of_bytes(name.as_bytes());
    let readable: String = name
        .bytes()
        .map(|byte| if is_alias_byte(byte) { char::from(byte) } else { '_' })
        .take(MAX_ALIAS - 17)
        .collect();
    // Only a server that lists a name made to collide gets the longer hash.
    let short = format!("{readable}-{}", hash.short(8));
    if plain.contains(&short) { format!("{readable}-{}", hash.short(16)) } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::fixture;
    use rstest::rstest;
    use serde_json::json;

    fn listed(name: &str, hint: Option<bool>) -> ListedTool {
        ListedTool {
            name: name.into(),
            input_schema: json!({"type": "object"}),
            annotations: hint.map(|hint| ("readOnlyHint".to_owned(), json!(hint))).into_iter().collect(),
            ..ListedTool::default()
        }
    }

    fn of_server(tools: Vec<CatalogueTool>) -> Vec<CatalogueTool> {
        tools.into_iter().filter(|tool| tool.source == ToolSource::Server).collect()
    }

    #[test]
    fn no_server_gets_the_calls_of_a_core_tool() {
        let tools = fix(&fixture::run(), vec![listed("focus_read", None), listed("ask_user", None)]);
        assert_eq!(of_server(tools), []);
    }

    #[test]
    fn what_the_author_says_of_a_tool_is_told_where_its_server_says_nothing() {
        let mut run = fixture::run();
        run.skill.tools[0].description = Some("Finds out who asks".into());
        let tools = fix(&run, vec![listed("verify_identity", None)]);
        assert_eq!(tools[0].description, "Finds out who asks");
    }

    #[test]
    fn only_the_skill_makes_a_tool_read_only_and_the_server_can_take_it_away() {
        let tools = fix(
            &fixture::run(),
            vec![
                listed("verify_identity", None),
                listed("check_eligibility", Some(false)),
                listed("process_refund", Some(true)),
            ],
        );
        let tools = of_server(tools);
        let read_only: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
        assert_eq!(read_only, [("verify_identity", true), ("check_eligibility", false), ("process_refund", false)]);
    }

    #[test]
    fn a_name_listed_twice_is_no_tool() {
        let tools = of_server(fix(&fixture::run(), vec![listed("a", None), listed("b", None), listed("a", None)]));
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn names_that_providers_refuse_get_distinct_aliases() {
        let long = "x".repeat(200);
        let tools = fix(
            &fixture::run(),
            vec![listed("a.b", None), listed("a/b", None), listed("a_b", None), listed(&long, None)],
        );
        let tools = of_server(tools);
        let aliases: std::collections::BTreeSet<_> = tools.iter().map(|tool| tool.alias.clone()).collect();
        assert_eq!(aliases.len(), 4);
        assert!(aliases.iter().all(|alias| is_plain(alias)), "{aliases:?}");
        assert!(aliases.contains("a_b"));
    }

    #[rstest]
    #[case::nothing_said(None, &[], true)]
    #[case::by_name(Some(vec!["process_refund"]), &[], true)]
    #[case::by_beginning(Some(vec!["process_*"]), &[], true)]
    #[case::none_allowed(Some(vec![]), &[], false)]
    #[case::other_allowed(Some(vec!["verify_identity"]), &[], false)]
    #[case::no_beginning_without_star(Some(vec!["process"]), &[], false)]
    #[case::blocked_wins(Some(vec!["*"]), &["process_refund"], false)]
    #[case::blocked_by_star(None, &["process*"], false)]
    fn policy(#[case] allowed: Option<Vec<&str>>, #[case] blocked: &[&str], #[case] passes: bool) {
        let policy = ToolPolicy {
            allowed: allowed.map(|names| names.into_iter().map(str::to_owned).collect()),
            blocked: blocked.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(policy_refusal(Some(&policy), "process_refund").is_none(), passes);
    }
}
