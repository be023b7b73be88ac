//! Warns of approvers of rules that deny calls: they are not asked.

use super::finding::Finding;
use bloomery_crds::v1alpha1::{ApprovalAction, SkillSpec};

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let approvals = spec.policy.iter().flat_map(|policy| &policy.approvals).enumerate();
    let approvals = approvals.map(|(at, rule)| (format!("approvals[{at}]"), rule.action, &rule.approver));
    let limits = spec.policy.iter().flat_map(|policy| &policy.limits).enumerate();
    let limits = limits.map(|(at, limit)| (format!("limits[{at}]"), limit.action, &limit.approver));
    let denying = approvals.chain(limits).filter(|(_, action, _)| *action == Some(ApprovalAction::Deny));
    denying
        .filter_map(|(rule, _, approver)| {
            let message = format!("{:?} is not asked, because the rule denies calls", approver.as_ref()?);
            let finding = Finding::warning(format!("spec.policy.{rule}.approver"), message);
            Some(finding.hint("remove the approver, or write action: require_approval"))
        })
        .collect()
}
