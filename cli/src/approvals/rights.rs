//! The rights that decisions require, and the message about missing ones.

use crate::cluster::Right;
use bloomery_crds::names::GROUP;

/// Returns the rights for a decision for an approver: on one Approval, or on all.
pub(super) fn to_decide(approver: &str, approval: Option<&str>) -> Vec<Right> {
    vec![
        Right { group: GROUP, verb: "approve", resource: "approvers", name: Some(approver.to_owned()) },
        Right { group: GROUP, verb: "patch", resource: "approvals", name: approval.map(str::to_owned) },
    ]
}

/// Returns the rights for reading: one Approval by its name, and those of a Job.
pub(super) fn to_read() -> Vec<Right> {
    ["get", "list"].map(|verb| Right { group: GROUP, verb, resource: "approvals", name: None }).to_vec()
}

/// Lists missing rights, and the rules that grant them.
pub(super) fn missing_message(user: &str, namespace: &str, missing: &[Right]) -> String {
    let what: Vec<String> = missing.iter().map(Right::description).collect();
    let mut rules: Vec<String> = missing.iter().map(|right| format!("\n  {}", rule(right))).collect();
    rules.dedup();
    format!(
        "{user} may not decide in the namespace {namespace}: missing is {}.\n\
         A RoleBinding to the chart's ClusterRole for approvers (bloomery-approver) gives it for all, or one to a Role with:{}",
        what.join(", and "),
        rules.concat()
    )
}

/// Formats a rule of a role. It names no Approvals, because they are short-lived.
fn rule(Right { verb, resource, name, .. }: &Right) -> String {
    let names = match name {
        Some(name) if *resource == "approvers" => format!("resourceNames: [{name}], "),
        _ => String::new(),
    };
    let verbs = if *resource == "approvals" { "get, list, patch" } else { verb };
    format!("- {{apiGroups: [{GROUP}], resources: [{resource}], {names}verbs: [{verbs}]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_rule_that_gives_it() {
        let said = missing_message("mallory@acme.io", "acme", &to_decide("supervisor", Some("refund-1")));
        insta::assert_snapshot!(said);
    }

    #[test]
    fn what_is_there_is_not_said() {
        let approver_only = &to_decide("supervisor", None)[..1];
        let said = missing_message("mallory@acme.io", "acme", approver_only);
        assert!(said.contains("approve on approvers.bloomery.dev/supervisor") && !said.contains("patch"), "{said}");
    }
}
