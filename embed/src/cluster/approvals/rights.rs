//! The rights that a decision requires, and the message about missing rights.

use crate::cluster::Right;
use bloomery_crds::names::GROUP;

/// Returns the rights that a decision for an approver requires. `approval` is the name of one Approval; `None` means all.
pub fn to_decide(approver: &str, approval: Option<&str>) -> Vec<Right> {
    vec![
        Right { group: GROUP, verb: "approve", resource: "approvers", name: Some(approver.to_owned()) },
        Right { group: GROUP, verb: "patch", resource: "approvals", name: approval.map(str::to_owned) },
    ]
}

/// Returns the rights to read an Approval by its name, and to list the Approvals of a Job.
pub fn to_read() -> Vec<Right> {
    ["get", "list"].map(|verb| Right { group: GROUP, verb, resource: "approvals", name: None }).to_vec()
}

/// Returns the message that lists the missing rights, and the rules that grant them.
pub fn missing_message(user: &str, namespace: &str, missing: &[Right]) -> String {
    let mut rules: Vec<String> = missing.iter().map(|right| format!("\n  {}", rule(right))).collect();
    // The rights on Approvals have the same rule.
    rules.dedup();
    format!(
        "{user} may not decide in the namespace {namespace}. Missing: {}.\n\
         A RoleBinding to the chart's ClusterRole bloomery-approver grants it for all approvers. For one approver, use a Role with \
         these rules:{}",
        Right::descriptions(missing),
        rules.concat()
    )
}

/// Formats the rule of a role that grants a right. The rule for Approvals grants all verbs that a decision needs. It names no
/// Approvals, because these are short-lived.
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
    fn missing_rights_are_listed_with_the_rules_that_grant_them() {
        let message = missing_message("mallory@acme.io", "acme", &to_decide("supervisor", Some("refund-1")));
        insta::assert_snapshot!(message);
    }

    #[test]
    fn other_rights_are_not_listed() {
        let approver_only = &to_decide("supervisor", None)[..1];
        let message = missing_message("mallory@acme.io", "acme", approver_only);
        assert!(
            message.contains("approve on approvers.bloomery.dev/supervisor") && !message.contains("patch"),
            "{message}"
        );
    }
}
