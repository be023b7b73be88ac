//! `policy.tools`: the tools that a Skill allows and blocks.

use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::ToolPolicy;

/// Returns the reason why `policy.tools` denies a core tool, or nothing. Only `blocked` applies to core tools: `allowed` lists the
/// tools of the server.
pub fn core_tool_refusal(policy: Option<&ToolPolicy>, tool: &str) -> Option<String> {
    let pattern = policy?.blocked.iter().find(|pattern| matches(pattern, tool))?;
    Some(format!("the Skill's policy.tools.blocked names {pattern:?}"))
}

/// Returns the reason why `policy.tools` denies a server's tool, or nothing. `blocked` wins; a missing `allowed` means `*`.
pub fn server_tool_refusal(policy: Option<&ToolPolicy>, tool: &str) -> Option<String> {
    if let Some(refusal) = core_tool_refusal(policy, tool) {
        return Some(refusal);
    }
    let allowed = policy?.allowed.as_ref()?;
    (!allowed.iter().any(|pattern| matches(pattern, tool)))
        .then(|| format!("the Skill's policy.tools.allowed does not name {tool:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::no_lists(None, &[], true)]
    #[case::by_name(Some(vec!["process_refund"]), &[], true)]
    #[case::by_prefix(Some(vec!["process_*"]), &[], true)]
    #[case::none_allowed(Some(vec![]), &[], false)]
    #[case::other_allowed(Some(vec!["verify_identity"]), &[], false)]
    #[case::no_prefix_without_star(Some(vec!["process"]), &[], false)]
    #[case::blocked_wins(Some(vec!["*"]), &["process_refund"], false)]
    #[case::blocked_by_star(None, &["process*"], false)]
    fn a_tool_must_be_allowed_and_not_blocked(
        #[case] allowed: Option<Vec<&str>>,
        #[case] blocked: &[&str],
        #[case] passes: bool,
    ) {
        let policy = ToolPolicy {
            allowed: allowed.map(|names| names.into_iter().map(str::to_owned).collect()),
            blocked: blocked.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(server_tool_refusal(Some(&policy), "process_refund").is_none(), passes);
    }
}
