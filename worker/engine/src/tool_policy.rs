//! `policy.tools`: the tools that a Skill allows and blocks. The tool policies of the tenant cut it: a tool must pass all of them.

use crate::run::Run;
use crate::tool::ToolSource;
use bloomery_crds::v1alpha1::ToolPolicy;

/// Returns the reason why the Skill, or else the tenant, denies every call of a tool, or nothing.
pub fn refusal(run: &Run, source: ToolSource, tool: &str) -> Option<String> {
    let of_skill = run.skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    let refusal = of_skill.and_then(|policy| skill_refusal(policy, source, tool));
    refusal.or_else(|| run.tenant_tools.iter().find_map(|policy| tenant_refusal(policy, source, tool)))
}

/// Returns the reason why the Skill's `policy.tools` denies a tool, or nothing.
pub fn skill_refusal(policy: &ToolPolicy, source: ToolSource, tool: &str) -> Option<String> {
    if let Some(pattern) = policy.blocking_entry(tool) {
        return Some(format!("the Skill's policy.tools.blocked names {pattern:?}"));
    }
    is_not_allowed(policy, source, tool).then(|| format!("the Skill's policy.tools.allowed does not name {tool:?}"))
}

fn tenant_refusal(policy: &ToolPolicy, source: ToolSource, tool: &str) -> Option<String> {
    if let Some(pattern) = policy.blocking_entry(tool) {
        return Some(format!("the tool policy of the namespace blocks {pattern:?}"));
    }
    is_not_allowed(policy, source, tool)
        .then(|| format!("the tool policy of the namespace does not allow the tool {tool:?}"))
}

/// Returns whether `allowed` leaves out a tool of the server. Core tools need not be allowed.
fn is_not_allowed(policy: &ToolPolicy, source: ToolSource, tool: &str) -> bool {
    source == ToolSource::Server && !policy.allows(tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
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
        assert_eq!(skill_refusal(&policy, ToolSource::Server, "process_refund").is_none(), passes);
        assert_eq!(tenant_refusal(&policy, ToolSource::Server, "process_refund").is_none(), passes);
    }

    #[rstest]
    #[case::allowed_by_both(ToolSource::Server, "process_refund", None)]
    #[case::not_allowed_by_the_tenant(
        ToolSource::Server,
        "note",
        Some("the tool policy of the namespace does not allow the tool \"note\"")
    )]
    #[case::blocked_by_the_tenant(
        ToolSource::Server,
        "process_payout",
        Some("the tool policy of the namespace blocks \"process_p*\"")
    )]
    #[case::blocked_by_both(
        ToolSource::Server,
        "delete_customer",
        Some("the Skill's policy.tools.blocked names \"delete_customer\"")
    )]
    #[case::a_core_tool_that_is_not_listed(ToolSource::Core, "ask_user", None)]
    #[case::a_blocked_core_tool(
        ToolSource::Core,
        "http_request",
        Some("the tool policy of the namespace blocks \"http_request\"")
    )]
    fn the_policy_of_the_tenant_cuts_that_of_the_skill(
        #[case] source: ToolSource,
        #[case] tool: &str,
        #[case] expected: Option<&str>,
    ) {
        let mut run = fixture::run();
        let blocked = vec!["process_p*".to_owned(), "http_request".to_owned()];
        run.tenant_tools = vec![ToolPolicy { allowed: Some(vec!["process_*".to_owned()]), blocked }];
        assert_eq!(refusal(&run, source, tool).as_deref(), expected);
        run.skill.policy = None;
        assert_eq!(refusal(&run, source, tool).is_some(), expected.is_some(), "also without a policy of the Skill");
    }
}
